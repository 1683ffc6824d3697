"""Measures claims: `python -m experiments c02 --data FOLDER`. See README.md."""

import argparse
import os
import sys
from pathlib import Path

from experiments import gpu
from experiments.claim import load_claims
from experiments.data import BERTS
from experiments.runner import Context, measure_claim
from experiments.store import MEASURED, ROOT, Results, sources_hash
from experiments.table import intervals, list_claims, write_table

OTHERS = ("table", "list", "intervals", "sources")


def main(arguments=None):
    """Runs the command line; returns the exit status."""
    os.environ.setdefault("KERAS_BACKEND", "torch")  # the backend of most stored results
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments[:1] == ["gpu"]:
        return gpu.main(arguments[1:])
    claims = load_claims()
    options = _parser(claims).parse_args(arguments)
    if options.claim == "table":
        write_table(claims)
        return 0
    if options.claim == "list":
        print(list_claims(claims))
        return 0
    if options.claim == "intervals":
        print("\n".join(intervals(claims)))
        return 0
    if options.claim == "sources":
        print(sources_hash(options.folder))
        return 0
    claim = claims[options.claim]
    claim = claims[claim.runs_of] if claim.runs_of else claim
    berts = {name: options.data / "checkpoints" / folder for name, folder in BERTS.items()}
    context = Context(options.data, options.out, berts)

    def chosen(run):
        return (options.seeds is None or run.seed in options.seeds) and all(part in run.key for part in options.only)

    results = Results.of(claim, options.results)
    done = measure_claim(claim, results, context, chosen, options.most, options.minutes)
    if options.results == MEASURED:
        write_table(claims, [claim.name])
    else:
        print("\n".join(beside_stored(done, results.measures(), Results.of(claim).measures())))
    return 0


def beside_stored(keys, again, stored):
    """A line for each run that was measured again, with its score and the stored one."""
    return [f"{key}: {again[key]['score']:.4f}, stored: {_score(stored.get(key))}" for key in keys]


def _score(measures):
    return f"{measures['score']:.4f}" if measures else "none"


def _parser(claims):
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    parser.add_argument(
        "claim",
        choices=[*claims, *OTHERS],
        help="a claim; or write the tables; list claims; list verdicts that depend on the interval; hash sources",
    )
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "kcrf", help="of `sources`: what to hash [kcrf]")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="the folder of the corpora")
    parser.add_argument("--out", type=Path, default=Path("runs/experiments"), help="files of unfinished runs")
    parser.add_argument(
        "--results",
        type=Path,
        default=MEASURED,
        metavar="FOLDER",
        help="where results are stored [experiments/measured]. In another folder, stored runs are measured again",
    )
    parser.add_argument("--seeds", type=int, nargs="+", help="measure these seeds only")
    parser.add_argument("--only", nargs="+", default=[], metavar="TEXT", help="measure runs whose names contain these")
    parser.add_argument("--most", type=int, metavar="N", help="measure at most N runs")
    parser.add_argument("--minutes", type=float, metavar="N", help="begin no run after N minutes")
    return parser


if __name__ == "__main__":
    sys.exit(main())
