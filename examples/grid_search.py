"""Choose hyper-parameters by what can be proved: scikit-learn's GridSearchCV with the verified-accuracy scorer.

    python examples/grid_search.py

The usual scorer counts right predictions; this one counts rows that are proved both right and robust.
"""

from __future__ import annotations

from sklearn.model_selection import GridSearchCV

import treeproof
from treeproof import AdditiveClassifier, datasets, make_verified_scorer

NORM, EPS = 1, 0.05


def main() -> GridSearchCV:
    data = datasets.load("diabetes")
    search = GridSearchCV(
        AdditiveClassifier(norm=NORM, eps=EPS, epochs=20, max_epochs=20, random_state=0),
        {"max_bins": [16, 64], "eps_factor": [1.0, 1.3]},
        scoring=make_verified_scorer(norm=NORM, eps=EPS),
        cv=3,
    )
    search.fit(data.X_train, data.y_train)
    for params, score in zip(search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True):
        print(f"{params}: verified accuracy {score:.3f}")
    print(f"\nchosen: {search.best_params_}\n")
    print(treeproof.certify(search.best_estimator_, data.X_test, data.y_test, norm=NORM, eps=EPS))
    return search


if __name__ == "__main__":
    main()
