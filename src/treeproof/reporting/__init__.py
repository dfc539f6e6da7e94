"""Results for people: terminal tables, matplotlib plots, notebook cards and the HTML report.

Names are resolved on first use; matplotlib is needed by the plot functions only.
"""

from __future__ import annotations

from importlib import import_module

_PUBLIC = {
    "write_report": ".html",
    "report_html": ".html",
    "plot_certified_error": ".plots",
    "plot_radii": ".plots",
    "plot_witness": ".plots",
    "plot_staircases": ".plots",
    "summary_table": ".tables",
}

__all__ = list(_PUBLIC)


def __getattr__(name: str):
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted(__all__)
