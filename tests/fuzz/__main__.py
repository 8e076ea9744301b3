"""`python -m tests.fuzz KIND [--seconds N] [--corpus DIRECTORY] [--runs N]`: fuzz with atheris (libFuzzer for Python).

Install it with `pip install -c constraints.txt -e .[fuzz]`. KIND `properties` does without: it tries the laws of
tests/properties on scenarios from a seed that it prints; `--seed N` repeats them. An input that breaks an invariant is written
to `crash-…` in the current directory: add it to tests/data/fuzz as KIND-what-is-wrong, which tests/fuzz/test_fuzz.py then runs.
"""

import argparse
import secrets
import sys
import tempfile
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("kind", choices=["mutate", "validate", "manifests", "properties"])
    parser.add_argument("--seconds", type=int, default=600, help="how long; 0 for ever")
    parser.add_argument("--corpus", type=Path, help="where inputs that reach new code are kept; default: nowhere")
    parser.add_argument("--seed", type=int, help="the first scenario of `properties`; default: any")
    given = parser.parse_args()
    if given.kind == "properties":
        from tests.properties.run import search

        seed = secrets.randbelow(10**9) if given.seed is None else given.seed
        sys.stdout.write(f"the first seed is {seed}\n")
        sys.stdout.flush()
        sys.stdout.write(f"{search(given.seconds, seed)} scenarios, none breaks a law\n")
        return
    import atheris

    with atheris.instrument_imports(include=["webhook"]):
        from tests.fuzz import inputs, targets
    target = targets.TARGETS[given.kind]
    prefix = 0 if given.kind == "manifests" else 1

    def mutator(data: bytes, max_size: int, seed: int) -> bytes:
        def change(some: bytes) -> bytes:
            return atheris.Mutate(some, max(len(some) + 16, 32))

        return inputs.changed(data, seed, change, prefix=prefix)[:max_size]

    with tempfile.TemporaryDirectory() as directory:
        corpus = given.corpus or Path(directory)
        corpus.mkdir(parents=True, exist_ok=True)
        for number, seed in enumerate(inputs.seeds(given.kind)):
            (corpus / f"seed-{number:04}").write_bytes(seed)
        options = [
            f"-max_total_time={given.seconds}",
            f"-max_len={targets.MAX_BYTES}",
            "-timeout=20",
            "-rss_limit_mb=2048",
            "-print_final_stats=1",
        ]
        atheris.Setup([sys.argv[0], *options, str(corpus)], target, custom_mutator=mutator)
        atheris.Fuzz()  # ends the process


main()
