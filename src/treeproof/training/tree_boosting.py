"""``TreeBoostingClassifier``: boosted trees trained against l_p perturbations (paper section 4.2).

At p = inf it is Andriushchenko & Hein's robust tree boosting, at eps = 0 plain boosting, with one tree the
paper's single robust tree. Training minimises a sound upper bound of the robust loss; certificates of the
fitted model come from the exact verifiers. Cost a tree: levels x rows x features x log(bins).
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import clone

from .._errors import InvalidInputError, must_be
from ..model import TreeEnsemble
from . import params
from .base import BinaryFit, BinaryTask, ProvableClassifier
from .tree_candidates import candidates
from .tree_growth import GrowthOptions
from .tree_losses import LOSSES
from .tree_progress import teller
from .tree_reach import Ball
from .tree_refit import RefitOptions
from .tree_rounds import Boosted, Bounded, RoundOptions, boost, start_base
from .tree_split import Rules
from .tree_start import initial_trees


class TreeBoostingClassifier(ProvableClassifier):
    """Boosted decision trees trained against an l_p adversary.

    Parameters
    ----------
    norm : float, default 1
        The p of the l_p norm, in [0, inf].
    eps : float, default 0.1
        Radius of the perturbations, in the units of X; 0 trains plain boosted trees.
    n_estimators : int, default 5
        Number of trees.
    max_depth : int or None, default 5
    max_leaf_nodes : int or None, default None
        With a number, the leaf of the largest gain is split first.
    learning_rate : float, default 1.0
        Factor on each tree's leaf values.
    loss : {"exponential", "logistic"}, default "exponential"
    max_weight : float, default 1.0
        Largest absolute leaf value before the learning rate.
    l2 : float, default 0.0
        Penalty on leaf values, in units of row weight.
    min_samples_leaf : float, default 1
        Least total weight of the training rows that can be brought to each side of a split.
    min_gain : float, default 0.0
        Least decrease of a node's robust loss for a split.
    max_bins : int or None, default 64
        Candidate thresholds a feature; None tries them all.
    cuts_per_gap : int, default 1
        Candidate thresholds inside each gap between neighbouring training values.
    growth_eps : float or None, default None
        Radius at which the trees' structure is grown; None is `eps`. With `corrective` and many trees a smaller
        one is better: no single tree faces the whole budget.
    eps_schedule : int or None, default None
        Levels of a tree over which the radius rises to `eps` while structure is grown (the paper's schedule).
        None is 3, but 1 at p = inf, where no crossing eats the budget of the next.
    reuse_features : bool, default True
        Whether a path may read a feature twice (the paper's algorithm reads each once).
    prune : bool, default False
        Merge sibling leaves of each new tree while its robust loss, each row at its worst leaf, does not rise.
    corrective : bool, default False
        Refit all leaf values as one convex problem under the bound of ONE budget shared by the trees, far above
        the sum of the trees' own worst cases.
    corrective_every : int, default 1
        Rounds between refits; the last round always ends with one. This and the `refit_` options below have no
        effect without `corrective`.
    refit_epochs : int, default 30
        Passes over the rows a refit.
    refit_rate : float, default 0.02
        The optimiser's first step size.
    refit_l2 : float, default 1e-4
        Penalty on leaf values in a refit, relative to the mean loss.
    refit_clean : float, default 0.0
        Share of the unmoved rows' loss in a refit: gives up some proofs for a smaller clean error. Where no useful
        proof is possible, it keeps the model from becoming constant. At p = inf prices are 0 and it must be 0.
    polish : bool, default False
        After each refit (so `corrective` must be on), as many epochs again with the smoothed count of unproved
        rows as the loss: rows that cannot be proved are given up instead of pulling the model towards a constant.
        With `refit_clean` it traces the trade-off between clean and verified error.
    subsample : float, default 1.0
        Share of the rows that each tree is grown on.
    max_features : float, default 1.0
        Share of the features that each tree may read.
    max_readers : int or None, default None
        How many trees may read a feature. With 1 the trees share no feature, and the bound of one shared budget
        is the linear relaxation of the exact worst case.
    early_stopping : int or None, default None
        Rounds without a better verified validation error before training stops; the best round is kept.
        The error is that of the training bound: sound, at or above the exact one.
    validation_fraction : float, default 0.1
        Share of the rows held out when `early_stopping` is on and no validation rows are given.
    init : estimator of treeproof or None, default None
        Trained first; the trees are added to its own. With an `AdditiveClassifier` and `corrective=True`, shallow
        trees join an additive model, and all leaf values are refitted under one budget.
    warm_start : bool, default False
        Continue from the trees of the last fit.
    random_state : int, RandomState or None, default None
    n_jobs : int or None, default None
        Threads: over the features of a node, or over the one-vs-all problems of several classes. The fitted model
        does not depend on it.
    progress : bool or callable, default False
        True shows a bar; a function is called with (rounds done, rounds).

    Attributes
    ----------
    classes_ : array (n_classes,)
    n_features_in_ : int
    feature_names_in_ : array of str, where X had names
    ensemble_ : TreeEnsemble
        The fitted model.
    history_ : list of dict
        One entry for two classes, else one a class: lists over the rounds of the mean robust loss bound
        ("loss"), and the share of rows the bound does not prove ("train_bound_error", "val_bound_error").

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((200, 3))
    >>> model = TreeBoostingClassifier(norm=1, eps=0.05).fit(X, X[:, 0] > 0.5)
    >>> model.predict([[0.9, 0.1, 0.1]])
    array([ True])
    """

    # a weight of 2 is a repeated row: sums over rows then come out bit for bit alike
    _merge_repeated_rows = True

    def __init__(
        self,
        norm=1,
        eps=0.1,
        *,
        n_estimators=5,
        max_depth=5,
        max_leaf_nodes=None,
        learning_rate=1.0,
        loss="exponential",
        max_weight=1.0,
        l2=0.0,
        min_samples_leaf=1,
        min_gain=0.0,
        max_bins=64,
        cuts_per_gap=1,
        growth_eps=None,
        eps_schedule=None,
        reuse_features=True,
        prune=False,
        corrective=False,
        corrective_every=1,
        refit_epochs=30,
        refit_rate=0.02,
        refit_l2=1e-4,
        refit_clean=0.0,
        polish=False,
        subsample=1.0,
        max_features=1.0,
        max_readers=None,
        early_stopping=None,
        validation_fraction=0.1,
        init=None,
        warm_start=False,
        random_state=None,
        n_jobs=None,
        progress=False,
    ):
        self.norm = norm
        self.eps = eps
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.max_leaf_nodes = max_leaf_nodes
        self.learning_rate = learning_rate
        self.loss = loss
        self.max_weight = max_weight
        self.l2 = l2
        self.min_samples_leaf = min_samples_leaf
        self.min_gain = min_gain
        self.max_bins = max_bins
        self.cuts_per_gap = cuts_per_gap
        self.growth_eps = growth_eps
        self.eps_schedule = eps_schedule
        self.reuse_features = reuse_features
        self.prune = prune
        self.corrective = corrective
        self.corrective_every = corrective_every
        self.refit_epochs = refit_epochs
        self.refit_rate = refit_rate
        self.refit_l2 = refit_l2
        self.refit_clean = refit_clean
        self.polish = polish
        self.subsample = subsample
        self.max_features = max_features
        self.max_readers = max_readers
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.init = init
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress

    # ------------------------------------------------------------------ the base's hooks

    def _check_parameters(self) -> None:
        super()._check_parameters()
        params.whole("n_estimators", self.n_estimators, 1)
        for name, low in (
            ("max_depth", 0),
            ("max_leaf_nodes", 2),
            ("max_bins", 1),
            ("max_readers", 1),
            ("eps_schedule", 1),
            ("early_stopping", 1),
        ):
            if getattr(self, name) is not None:
                params.whole(name, getattr(self, name), low)
        for name in ("cuts_per_gap", "corrective_every", "refit_epochs"):
            params.whole(name, getattr(self, name), 1)
        for name in ("learning_rate", "max_weight", "refit_rate"):
            params.finite(name, getattr(self, name), 0.0, open_low=True)
        for name in ("l2", "min_samples_leaf", "min_gain", "refit_l2"):
            params.finite(name, getattr(self, name), 0.0)
        for name in ("subsample", "max_features"):
            params.number(name, getattr(self, name), 0.0, 1.0, open_low=True)
        params.number("refit_clean", self.refit_clean, 0.0, 1.0)
        if self.norm == np.inf and self.refit_clean > 0:
            raise InvalidInputError(
                must_be("refit_clean", "0 at norm = inf, where no move has a price", self.refit_clean)
            )
        params.number("validation_fraction", self.validation_fraction, 0.0, 0.9, open_low=True)
        for name in ("reuse_features", "prune", "warm_start", "corrective", "polish"):
            params.choice(name, getattr(self, name), (True, False))
        if self.polish and not self.corrective:
            raise InvalidInputError(must_be("polish", "False without corrective=True: it follows a refit", self.polish))
        if self.growth_eps is not None:
            params.finite("growth_eps", self.growth_eps, 0.0)
        params.choice("loss", self.loss, tuple(LOSSES))
        if not (self.init is None or isinstance(self.init, ProvableClassifier)):
            raise InvalidInputError(must_be("init", "None or an unfitted classifier of treeproof", self.init))

    @property
    def _link_scale(self) -> float:  # type: ignore[override]
        return 2.0 if self.loss == "exponential" else 1.0

    def fit(self, X, y, sample_weight=None, *, X_val=None, y_val=None):
        super().fit(X, y, sample_weight, X_val=X_val, y_val=y_val)
        self.history_ = [fit.history for fit in self._fits]
        return self

    fit.__doc__ = ProvableClassifier.fit.__doc__

    def _fit_binary(self, task: BinaryTask) -> BinaryFit:
        options = self._round_options()
        train, valid = self._bounded(task, options)
        cuts = candidates(train[0].columns, self.max_bins, self.cuts_per_gap)
        if task.previous is not None:
            model = task.previous.state.copy()
        else:
            model = self._first_model(train[0], options, task.rng)
        rounds = self.n_estimators - (len(model.trees) - model.given)
        if rounds < 0:
            raise InvalidInputError(
                must_be(
                    "n_estimators",
                    f"at least the {len(model.trees) - model.given} trees of the fit to continue",
                    self.n_estimators,
                )
            )
        for rows in [*train, *([] if valid is None else [valid])]:
            rows.restart(model.base, model.trees, shared=self.corrective)
        with self._threads() as pool, teller(self.progress, task.label) as tell:
            model = boost(model, rounds, train, valid, cuts, replace(options, pool=pool), task.rng, tell)
        ensemble = TreeEnsemble.from_trees(
            [tree.as_dict() for tree in model.trees], n_features=task.X.shape[1], base=model.base
        )
        return BinaryFit(ensemble, model.history, model)

    def _first_model(self, train: Bounded, options: RoundOptions, rng: np.random.Generator) -> Boosted:
        """What the first tree is added to: the best constant, or the fitted initial model."""
        if self.init is None:
            return Boosted(start_base(train.side, train.weight, options))
        first = clone(self.init)
        if getattr(first, "random_state", 0) is None:
            # one seed for the whole fit
            first.set_params(random_state=int(rng.integers(2**31)))
        fitted = first.fit(train.columns.T, train.side, train.weight)
        base, trees = initial_trees(fitted.ensemble_)
        return Boosted(base, trees, given=len(trees))

    def _threads(self):
        """Threads that share a node's features; with several classes, each class has one thread already."""
        threads = effective_n_jobs(self.n_jobs) if len(self.classes_) == 2 else 1
        return ThreadPoolExecutor(threads) if threads > 1 else nullcontext()

    # ------------------------------------------------------------------ from parameters to options

    def _round_options(self) -> RoundOptions:
        rules = Rules(LOSSES[self.loss], float(self.max_weight), float(self.l2), float(self.min_samples_leaf))
        growth = GrowthOptions(
            max_depth=self.max_depth,
            max_leaf_nodes=self.max_leaf_nodes,
            min_gain=float(self.min_gain),
            schedule=self.eps_schedule or (1 if self.norm == np.inf else 3),
            reuse=self.reuse_features,
            rules=rules,
        )
        return RoundOptions(
            ball=Ball(float(self.norm), float(self.eps)),
            growth_ball=Ball(float(self.norm), float(self.eps if self.growth_eps is None else self.growth_eps)),
            growth=growth,
            learning_rate=float(self.learning_rate),
            subsample=float(self.subsample),
            max_features=float(self.max_features),
            prune=self.prune,
            max_readers=self.max_readers,
            patience=self.early_stopping,
            correct_every=self.corrective_every if self.corrective else None,
            refit=RefitOptions(
                loss=LOSSES[self.loss],
                epochs=self.refit_epochs,
                rate=float(self.refit_rate),
                l2=float(self.refit_l2),
                clean=float(self.refit_clean),
                polish=bool(self.polish),
            ),
        )

    def _bounded(self, task: BinaryTask, options: RoundOptions) -> tuple[list[Bounded], Bounded | None]:
        """Training and validation rows; some training rows are held out where early stopping needs them.

        The training rows come with the bounds of the growth ball and, where that differs, of the full one.
        """
        rows, side, weight = task.X, task.y, task.sample_weight
        valid = None
        if task.X_val is not None and task.y_val is not None:
            valid = Bounded.of(task.X_val, task.y_val, options.ball)
        elif self.early_stopping is not None and len(side) > 1:
            order = task.rng.permutation(len(side))
            count = min(max(1, round(self.validation_fraction * len(side))), len(side) - 1)
            held, kept = order[:count], np.sort(order[count:])
            valid = Bounded.of(rows[held], side[held], options.ball, weight[held])
            rows, side, weight = rows[kept], side[kept], weight[kept]
        train = [Bounded.of(rows, side, options.growth_ball, weight)]
        if options.growth_ball != options.ball:
            train.append(replace(train[0], ball=options.ball))
        return train, valid
