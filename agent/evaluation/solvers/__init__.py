"""The solvers, a file each: built-in, goldens, scripts, personas, endpoints, recordings."""
