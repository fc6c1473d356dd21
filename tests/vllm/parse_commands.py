"""Reads ``vllm serve`` commands with vLLM's own parser, without starting anything. Run by vLLM's Python.

Standard input: a JSON list of commands, each a list of words that starts with ``vllm serve``. Standard output: what
each was understood as, a JSON list of objects. A command that vLLM does not take ends the program with its message.
"""

from __future__ import annotations

import json
import sys

from vllm.entrypoints.cli.serve import ServeSubcommand
from vllm.utils.argparse_utils import FlexibleArgumentParser


def understood(command: list[str]) -> dict[str, object]:
    """The options by their names in Python."""
    parser = FlexibleArgumentParser()
    serve = ServeSubcommand()
    serve.subparser_init(parser.add_subparsers(dest="subparser"))
    options = parser.parse_args(command[1:])
    serve.validate(options)
    return dict(vars(options))


if __name__ == "__main__":
    sys.stdout.write(json.dumps([understood(command) for command in json.load(sys.stdin)], default=str))
