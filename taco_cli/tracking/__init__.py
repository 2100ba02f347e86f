"""What a run is, where its files are, and where its metrics go."""

from taco_cli.tracking.finding import exports_of, named_run_folders, run_folders
from taco_cli.tracking.folder import RunFolder, slug
from taco_cli.tracking.manifest import (
    Manifest,
    Status,
    config_hash,
    continued,
    differences,
    new_manifest,
    now,
    plain,
    read_manifest,
    write_manifest,
)
from taco_cli.tracking.sinks import Sink, Sinks, build_sinks

__all__ = [
    "Manifest",
    "RunFolder",
    "Sink",
    "Sinks",
    "Status",
    "build_sinks",
    "config_hash",
    "continued",
    "differences",
    "exports_of",
    "named_run_folders",
    "new_manifest",
    "now",
    "plain",
    "read_manifest",
    "run_folders",
    "slug",
    "write_manifest",
]
