"""The model card of an export: what was trained, on what, how far, and how to load it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from taco_cli.encoder.encoder import Encoder
from taco_cli.encoder.flops import parameter_count

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_TEMPLATE = """---
library_name: transformers
pipeline_tag: fill-mask
tags:
- masked-language-modeling
- {architecture}
- {objective}
---

# {name}

A `{architecture}` encoder of {total:,} parameters ({without_embeddings:,} without embeddings), pre-trained with the
objective `{objective}` by taco-cli.

## Training

{facts}

## Use

```python
from transformers import AutoModelForMaskedLM, AutoTokenizer, pipeline

tokenizer = AutoTokenizer.from_pretrained(".")
model = AutoModelForMaskedLM.from_pretrained(".")
pipeline("fill-mask", model=model, tokenizer=tokenizer)("The {mask} is here.")
```

There is **no trained pooler**: `AutoModel` reports the pooler's weights as missing (where the architecture has one)
and makes fresh ones. Use `last_hidden_state`, not `pooler_output`. Sequences: at most {positions} tokens.

## License

The weights carry no license of their own: which one they can have depends on the texts they were trained on. Check
the licenses of the corpus before you publish them, and add `license:` to the head of this file.
"""


def model_card(encoder: Encoder, tokenizer: PreTrainedTokenizerBase, facts: Mapping[str, Any]) -> str:
    """Return the card in Markdown with YAML front matter.

    Args:
        encoder: the exported model.
        tokenizer: its tokenizer.
        facts: of the run. ``name`` and ``objective`` are used in the text; all others are listed in their order,
            plain values in a table, mappings (``corpus``, ``metrics``, ``config``) each in one of their own.
    """
    count = parameter_count(encoder)
    return _TEMPLATE.format(
        architecture=encoder.architecture,
        name=facts.get("name", "taco-cli encoder"),
        objective=facts.get("objective", "unknown"),
        total=count.total,
        without_embeddings=count.without_embeddings,
        facts=_sections(facts),
        mask=tokenizer.mask_token,
        positions=encoder.positions,
    )


def _sections(facts: Mapping[str, Any]) -> str:
    plain = {key: value for key, value in facts.items() if not isinstance(value, Mapping)}
    nested = {key: value for key, value in facts.items() if isinstance(value, Mapping)}
    parts = [_table(plain)]
    for key, value in nested.items():
        body = f"```json\n{json.dumps(value, indent=2)}\n```" if key == "config" else _table(value)
        parts.append(f"### {key.replace('_', ' ').capitalize()}\n\n{body}")
    return "\n\n".join(parts)


def _table(values: Mapping[str, Any]) -> str:
    rows = [f"| {key} | {_cell(value)} |" for key, value in values.items()]
    return "\n".join(["| | |", "|---|---|", *rows])


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    text = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
    return text.replace("|", "\\|").replace("\n", " ")
