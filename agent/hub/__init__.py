"""Models of the Hugging Face Hub: fetching a `config.json`, and nothing else, where the network was allowed."""
