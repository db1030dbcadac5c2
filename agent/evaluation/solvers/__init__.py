"""Who proposes in an evaluation, one file each: built-in, goldens, scripts, personas, endpoints, recordings."""
