"""From Hydra's composed configuration to plain dataclasses, and Hydra's errors in plain words.

This module and the command line are the only ones that know Hydra and OmegaConf.
"""

from __future__ import annotations

import dataclasses
import difflib
import os
import re
from collections.abc import Collection, Mapping
from typing import Any

from hydra.core.config_store import ConfigStore
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf

from taco_cli.config.analyze import AnalyzeConfig
from taco_cli.config.checks import ConfigError, check
from taco_cli.config.compare import CompareConfig
from taco_cli.config.glue import GlueConfig
from taco_cli.config.schema import RunConfig

SCHEMAS: dict[str, type] = {"train": RunConfig, "glue": GlueConfig, "analyze": AnalyzeConfig, "compare": CompareConfig}


def register_schema(command: str) -> None:
    """Make the command's dataclass the first entry of its defaults list (``train_schema``)."""
    store = ConfigStore.instance()
    store.store(name=f"{command}_schema", node=SCHEMAS[command])
    # Hydra copies the whole store for every group that `--help` lists, three quarters of its time. Nothing changes what
    # is stored: loading copies it again.
    vars(store)["__deepcopy__"] = lambda memo: store


def run_config(composed: DictConfig) -> RunConfig:
    """Turn the composed configuration of ``taco-train`` into a checked :class:`RunConfig`.

    Raises:
        ConfigError: a rule of :mod:`taco_cli.config.checks` is broken.
    """
    config = plain(composed, "train")
    assert isinstance(config, RunConfig)
    if config.label is None:
        config.label = label(config.objective.name, swept_overrides())
    check(config)
    return config


def plain(composed: DictConfig, command: str) -> Any:
    """Return the dataclass instance behind a composed configuration.

    Raises:
        ConfigError: a key that the schema does not have; Hydra lets ``+key=value`` add one.
    """
    known = set(_keys(SCHEMAS[command]))
    extra = [key for key in _paths(composed) if key not in known]
    if extra:
        raise ConfigError("\n".join(_did_you_mean(key, command) for key in extra))
    return OmegaConf.to_object(composed)


def restored(tree: Mapping[str, Any]) -> RunConfig:
    """Return the configuration that a manifest holds; keys that came later have their defaults."""
    config = OmegaConf.to_object(OmegaConf.merge(OmegaConf.structured(RunConfig), dict(tree)))
    assert isinstance(config, RunConfig)
    return config


def overridden(groups: Collection[str]) -> list[str]:
    """Return this job's command-line overrides of the given keys and of what is below them."""
    overrides = list(HydraConfig.get().overrides.task) if HydraConfig.initialized() else []
    return [item for item in overrides if re.split(r"[.=@]", item.lstrip("+~"), maxsplit=1)[0] in groups]


def swept_overrides() -> str:
    """Return this job's swept overrides as Hydra writes them: ``a.b=1,c=2``."""
    return HydraConfig.get().job.override_dirname if HydraConfig.initialized() else ""


def label(objective: str, swept: str) -> str:
    """Name the arm: the objective's name and a slug of what is swept beside objective and seed.

    >>> label("taco", "objective.tc.temperature=0.05,trainer.compile=false")
    'taco_tc.temperature-0.05_trainer.compile-false'
    """
    overrides = [item.lstrip("+~") for item in swept.split(",") if item]
    parts = [item for item in overrides if not item.startswith(("objective=", "seed=", "experiment="))]
    slugs = [re.sub(r"[^\w.-]+", "-", part.removeprefix("objective.")) for part in parts]
    return "_".join([objective, *slugs])


def explain(error: Exception, command: str) -> str:
    """Say what is wrong with a configuration in one short paragraph, with the nearest names."""
    causes = [str(error)]
    if error.__cause__ is not None and str(error.__cause__) not in causes[0]:
        causes.append(str(error.__cause__))
    text = "\n".join(causes)
    lines = [line.strip() for line in text.splitlines()]
    # Hydra's advice to append an unknown key with + leads into the next error, since keys are typed.
    noise = ("object_type=", "reference_type=", "full_key:", "To append to your config", "Set the environment")
    kept = [line for line in lines if line and not line.startswith(noise)]
    key = _unknown_key(text)
    return "\n".join([*dict.fromkeys(kept), *([_did_you_mean(key, command)] if key else [])])


def _did_you_mean(key: str, command: str) -> str:
    known = _keys(SCHEMAS[command])
    near = difflib.get_close_matches(key, known, n=3, cutoff=0.6)
    last = key.rsplit(".", 1)[-1]
    near += [name for name in known if name.rsplit(".", 1)[-1] == last and name not in near][:3]
    advice = f"did you mean {' or '.join(near)}?" if near else f"`taco-{command} --cfg job` lists them all"
    return f"{key} is not a key of taco-{command}; {advice}"


def _unknown_key(text: str) -> str | None:
    """Find the dotted key that a Hydra or OmegaConf message complains of, if it is an unknown one."""
    if not re.search(r"not in|not found|No match", text):
        return None
    for pattern in (
        r"Could not override '([\w.@/+~]+)'",
        r"full_key: ([\w.]+)",
        r"Could not append[^']*'([\w.@/+~]+)'",
    ):
        if found := re.search(pattern, text):
            return found[1].lstrip("+~")
    return None


def _paths(node: DictConfig, prefix: str = "") -> list[str]:
    """List the dotted keys of a configuration down to its dataclasses' fields."""
    names = []
    for key in map(str, node):
        names.append(f"{prefix}{key}")
        child = node._get_node(key)
        if isinstance(child, DictConfig) and not child._is_none():
            names += _paths(child, f"{prefix}{key}.")
    return names


def _keys(schema: type, prefix: str = "") -> list[str]:
    """List the dotted keys of a dataclass and of the dataclasses in it."""
    names = []
    for item in dataclasses.fields(schema):
        names.append(prefix + item.name)
        if isinstance(item.default_factory, type) and dataclasses.is_dataclass(item.default_factory):
            names += _keys(item.default_factory, prefix + item.name + ".")
    return names


_FLAGS = ("help", "hydra-help", "version", "cfg", "resolve", "package", "run", "multirun", "shell-completion")
_FLAGS_WITH_VALUE = ("config-path", "config-name", "config-dir", "experimental-rerun", "info")


def sweep_arguments(arguments: list[str]) -> list[str]:
    """Prepare command-line arguments for Hydra.

    ``--key=value``, as W&B sweep agents pass it, becomes ``key=value``. ``~/`` at the beginning of a value, which no
    shell expands after a dotted key and Hydra cannot read, becomes the home folder. Keys that are set but not swept are
    kept out of Hydra's ``override_dirname``, which thereby names what distinguishes the jobs of a sweep,
    also where a launcher runs them on another machine.
    """
    arguments = [_without_dashes(argument) for argument in arguments]
    overrides = [_with_home(argument) for argument in arguments if _is_override(argument)]
    others = [argument for argument in arguments if not _is_override(argument)]
    fixed = [key for key in map(_fixed_key, overrides) if key is not None]
    if fixed:
        overrides.append(f"hydra.job.config.override_dirname.exclude_keys=[{','.join(fixed)}]")
    return [*others, *overrides]  # together, for Hydra takes only one run of overrides


def _fixed_key(argument: str) -> str | None:
    """Return the key that an override sets to one value; None for a sweep and what is no override."""
    try:
        override = OverridesParser.create().parse_override(argument)
    except HydraException:
        return None  # Hydra itself will complain about it
    swept = override.is_sweep_override() or override.key_or_group.startswith("hydra")
    return None if swept else override.key_or_group


def _with_home(argument: str) -> str:
    return re.sub(r"(?<=[=\[,])~(?=/)", lambda _: os.path.expanduser("~"), argument)


def _is_override(argument: str) -> bool:
    return "=" in argument and not argument.startswith("-")


def _without_dashes(argument: str) -> str:
    found = re.match(r"--([\w.@/+~-]+)=", argument)
    return argument[2:] if found and found[1] not in _FLAGS + _FLAGS_WITH_VALUE else argument
