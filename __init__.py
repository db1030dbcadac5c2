"""shardwright."""
