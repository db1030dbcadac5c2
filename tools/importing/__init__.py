"""Launch commands and manifests of engines, read back as deployments."""
