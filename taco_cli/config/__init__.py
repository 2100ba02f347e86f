"""The typed configuration of every command."""
