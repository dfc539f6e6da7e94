"""A million synthetic rows of 50 features: training time and peak memory of `AdditiveClassifier`.

    python benchmarks/million_rows.py                 # l1, eps .05
    python benchmarks/million_rows.py --rows 100000 --norm inf

The labels depend on all features, on one of them not monotonically, with noise. The compile time of a small fit comes
first and is left out. Peak memory is the process's own, data included.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time

import numpy as np

from treeproof import AdditiveClassifier


def synthetic(rows: int, features: int):
    """Uniform features; a noisy label."""
    rng = np.random.default_rng(0)
    X = rng.random((rows, features))
    weight = rng.normal(size=features) / np.sqrt(np.arange(1, features + 1))
    score = (X - 0.5) @ weight + np.sin(6.0 * X[:, 0]) + 0.3 * rng.normal(size=rows)
    return X, (score > 0).astype(int)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--features", type=int, default=50)
    parser.add_argument("--norm", type=float, default=1.0)
    parser.add_argument("--eps", type=float, default=0.05)
    parser.add_argument("--n-jobs", type=int, default=1)
    options = parser.parse_args()
    X, y = synthetic(options.rows, options.features)
    model = AdditiveClassifier(options.norm, options.eps, random_state=0, n_jobs=options.n_jobs)
    AdditiveClassifier(options.norm, options.eps, epochs=1, max_epochs=1).fit(X[:500], y[:500])
    wall, cpu = time.perf_counter(), time.process_time()
    model.fit(X, y)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**30 if sys.platform == "darwin" else 2**20)
    found = model.certify(X[:2000], y[:2000])
    print(f"{options.rows:,} x {options.features}: {wall:.0f} s ({cpu:.0f} CPU s), peak memory {peak:.2f} GiB")
    print(f"gap {model.gap_:.4f}, {model.ensemble_.n_trees} thresholds; first 2,000 rows:")
    print(f"clean error {found.clean_error:.3f}, verified error {found.verified_error:.3f}")


if __name__ == "__main__":
    main()
