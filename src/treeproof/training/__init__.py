"""Estimators whose predictions are provable: each fits a `TreeEnsemble`, in scikit-learn's way."""
