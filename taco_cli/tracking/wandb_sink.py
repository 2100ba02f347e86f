"""One W&B run per job, online where that works and offline where it does not; training never waits for it.

How a run ends at W&B: ``finished`` with exit code 0; ``failed`` with exit code 1; ``interrupted`` is marked
preempted with exit code 143 and gets the tag "interrupted". A resumed job continues the run with the same id
(from the manifest), and the tag goes again. The x-axis is `step`, logged in the same call as the values, with
`tokens` and `seconds` beside it: W&B's own step would restart at 0 after an offline resume.
"""

from __future__ import annotations

import logging
import os
import secrets
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import wandb
from wandb.sdk.lib import wbauth

from taco_cli.config.schema import RunConfig
from taco_cli.tracking.folder import RunFolder
from taco_cli.tracking.manifest import Manifest, Status, config_hash, plain

logger = logging.getLogger(__name__)

_REACH_SECONDS = 4.0  # to get any answer from the server ...
_INIT_SECONDS = 6.0  # ... and to open the run: together the 10 seconds after which a run goes offline
_FINISH_SECONDS = 120.0  # for uploads still under way when training has ended; `wandb sync` sends the rest
_EXIT_CODES = {Status.finished: 0, Status.failed: 1, Status.interrupted: 143}
_INTERRUPTED = "interrupted"


class WandbSink:
    """Logs to one W&B run: group `name`, run name "<label> seed <seed>", config resolved plus `group_key`."""

    def __init__(
        self, config: RunConfig, folder: RunFolder, manifest: Manifest, already_logged: int | None = None
    ) -> None:
        """Open the run, or continue the one whose id the manifest has.

        Args:
            config: the run's.
            folder: the run's; W&B writes below it unless ``tracking.wandb_dir`` is set.
            manifest: the run's; gets `wandb_id` if it has none.
            already_logged: last step that W&B got before a kill and that the run repeats: not sent again.

        Raises:
            ValueError: W&B refuses a setting, e.g. the project's name.
        """
        self._folder = folder
        self._upload_model = config.tracking.upload_model
        known = manifest.get("wandb_id")
        self._already_logged = -1 if known is None or already_logged is None else already_logged
        self._run = _open(_init_arguments(config, folder, known or secrets.token_hex(4)))
        manifest["wandb_id"] = self._run.id  # a sweep agent's run has the agent's id
        self._run.tags = tuple(config.tracking.tags)
        self._run.define_metric("tokens", step_metric="step")
        self._run.define_metric("seconds", step_metric="step")
        self._run.define_metric("*", step_metric="step")

    def log(self, metrics: dict[str, float], step: int, tokens: int, seconds: float) -> None:
        """Send the values together with their three x-axes."""
        if step > self._already_logged:
            self._run.log({"step": step, "tokens": tokens, "seconds": seconds, **metrics})

    def close(self, status: Status) -> None:
        """End the W&B run as the job ended."""
        if status == Status.finished and self._upload_model:
            self._send_model()
        if status == Status.interrupted:
            self._run.mark_preempting()
            self._run.tags = (*(self._run.tags or ()), _INTERRUPTED)
        self._run.finish(exit_code=_EXIT_CODES[status])

    def _send_model(self) -> None:
        exports = sorted(self._folder.exports.glob("step-*"), key=lambda path: (len(path.name), path.name))
        if not exports:
            logger.warning("tracking.upload_model: there is no export in %s to send.", self._folder.exports)
            return
        artifact = wandb.Artifact(f"model-{self._run.id}", type="model")
        artifact.add_dir(str(exports[-1]), skip_cache=True, policy="immutable")  # no copies in ~/.cache
        self._run.log_artifact(artifact)


def _init_arguments(config: RunConfig, folder: RunFolder, run_id: str) -> dict[str, Any]:
    label = config.label or config.objective.name
    directory = Path(config.tracking.wandb_dir).expanduser() if config.tracking.wandb_dir else folder.path
    directory.mkdir(parents=True, exist_ok=True)  # W&B turns to the temporary folder if it is not there
    return {
        "project": config.tracking.project,
        "entity": config.tracking.entity,
        "dir": str(directory),
        "id": run_id,
        "resume": "allow",
        "reinit": "create_new",  # a run left open by an earlier job of the process is not ours
        "group": config.name,
        "name": f"{label} seed {config.seed}",
        "job_type": "pretrain",
        "config": {
            **plain(config),
            "label": label,
            "group_key": config_hash(config, with_seed=False),
            "run_folder": str(folder.path),
        },
    }


def _open(arguments: dict[str, Any]) -> wandb.Run:
    """Start the W&B run, offline with one notice if it cannot be online."""
    wandb.setup(wandb.Settings(silent=True))
    asked = os.environ.get("WANDB_MODE", "online").lower()
    if asked == "disabled":
        return _init(arguments, "disabled")
    if asked not in ("offline", "dryrun"):
        reason = why_not_online()
        if reason is None:
            try:
                return _init(arguments, "online")
            except (wandb.Error, OSError) as error:
                reason = f"{type(error).__name__}: {error}"
                wandb.teardown()  # or the offline run could not have the same id
        logger.warning(
            "W&B: offline, because %s. Training goes on; send the run later with `wandb sync %s`.",
            reason,
            Path(arguments["dir"], "wandb", f"offline-run-*-{arguments['id']}"),
        )
    try:
        return _init(arguments, "offline")
    except wandb.Error as error:
        raise ValueError(f"tracking: W&B refuses this run ({error}); correct it or use tracking=csv") from error


def _init(arguments: dict[str, Any], mode: Literal["online", "offline", "disabled"]) -> wandb.Run:
    settings = wandb.Settings(
        init_timeout=_INIT_SECONDS,
        finish_timeout=_FINISH_SECONDS,
        console="off",
        silent=True,
        save_code=False,
    )
    return wandb.init(**arguments, mode=mode, settings=settings)


def why_not_online() -> str | None:
    """Return what stands in the way of an online run; None if nothing does."""
    host = os.environ.get("WANDB_BASE_URL") or wandb.setup().settings.base_url
    try:
        if wbauth.authenticate_session(host=host, source="taco", prompt=False, update_session=False) is None:
            return "there is no key (WANDB_API_KEY or `wandb login`)"
    except wandb.Error as error:
        return f"the key cannot be used: {error}"
    if not _within(_REACH_SECONDS, lambda: _answers(host)):
        return f"{host} did not answer within {_REACH_SECONDS:.0f} seconds"
    return None


def _answers(url: str) -> bool:
    """Whether a server answers at all, through the proxy that the environment names."""
    try:
        urllib.request.urlopen(url, timeout=_REACH_SECONDS).close()
    except urllib.error.HTTPError:
        return True
    except (OSError, ValueError):
        return False
    return True


def _within(seconds: float, check: Callable[[], bool]) -> bool:
    """Run `check` for at most `seconds`: looking up a name has no time limit of its own."""
    result: list[bool] = []
    thread = threading.Thread(target=lambda: result.append(check()), daemon=True)
    thread.start()
    thread.join(seconds)
    return result == [True]
