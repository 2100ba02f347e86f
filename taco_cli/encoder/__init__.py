"""Encoders: any Hugging Face masked-LM architecture, built from sizes or loaded, and exported again."""

from taco_cli.encoder.build import build_encoder
from taco_cli.encoder.encoder import Encoder, EncoderOutput
from taco_cli.encoder.export import export, fingerprint
from taco_cli.encoder.flops import ParameterCount, model_flops, parameter_count
from taco_cli.encoder.tables import export_of_run

__all__ = [
    "Encoder",
    "EncoderOutput",
    "ParameterCount",
    "build_encoder",
    "export",
    "export_of_run",
    "fingerprint",
    "model_flops",
    "parameter_count",
]
