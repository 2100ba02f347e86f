"""Pre-train BERT-type encoders with MLM and TACO, and compare what the objectives teach."""

__version__ = "0.1.0"
