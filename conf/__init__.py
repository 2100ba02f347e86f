"""The language of experiments: YAML files alone, one folder per configuration group."""
