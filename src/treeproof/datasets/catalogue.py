"""The data sets by name: what they are, where they come from, what their arrays must be.

A `Source` is something that can be had as one file; an `Entry` is a data set that users ask for by
name, and is cut from one source (``mnist-1-5`` from ``mnist``).
"""

from __future__ import annotations

from dataclasses import dataclass

UCI = "CC BY 4.0 (UCI Machine Learning Repository)"


@dataclass(frozen=True)
class Source:
    """One file of raw data.

    Attributes
    ----------
    file : str
        Its name in a folder of prepared data.
    checksums : tuple of str
        What `checksums.of_arrays` may give for it.
    embedded : bool
        Whether the package carries it.
    openml : int or None
        Its number at openml.org, where it can be downloaded.
    split : str
        How its rows are divided into training and test.
    """

    file: str
    checksums: tuple[str, ...]
    embedded: bool = False
    openml: int | None = None
    split: str = "first 80% of the rows are the training set"


@dataclass(frozen=True)
class Entry:
    """One data set: `sources` are tried in order; `pair` keeps two classes, the first one being class 1."""

    name: str
    title: str
    sources: tuple[str, ...]
    class_names: tuple[str, ...]
    origin: str
    licence: str
    pair: tuple[int, int] | None = None
    image: bool = False


SOURCES = {
    "breast-cancer": Source(
        "breast-cancer-wisconsin.data",
        ("sha256:85fbbb4c8aebac0b98124e84ea7187b4fc45aa5cd8929c101a3fbfe966052127",),
        embedded=True,
    ),
    "diabetes": Source(
        "diabetes.csv",
        ("sha256:474d8c0b28d351620bae8f1bf883039983b21a918a0fc6208c6a57d27da56bfb",),
        embedded=True,
    ),
    "spambase": Source(
        "spambase.csv",
        ("sha256:43e04a6d3000817f7005ceef40f62d0e08b4a039a24b6b36fed067ce7c768d3d",),
        embedded=True,
        split="shuffled with a fixed seed (the file is sorted by class), then the first 80% train",
    ),
    # The image checksums are of the IDX files that the arrays stand for, so they can be compared with
    # the ones published for the original downloads.
    "mnist": Source(
        "mnist.npz",
        (
            "md5:6bbc9ace898e44ae57da46a324031adb+a25bea736e30d166cdddb491f175f624"
            "+2646ac647ad5339dbf082846283269ea+27ae3e4e09519cfbb04c329615203637",
        ),
        openml=554,
        split="the original 60000 / 10000",
    ),
    "fashion-mnist": Source(
        "fashion_mnist.npz",
        (
            "md5:f4a8712d7a061bf5bd6d2ca38dc4d50a+9018921c3c673c538a1fc5bad174d6f9"
            "+8181f5470baa50b63fa0f6fddb340f0a+15d484375f8d13e6eb1aabb0c3f46965",
        ),
        openml=40996,
        split="the original 60000 / 10000",
    ),
    "fashion-shoes": Source(
        "fashion_shoes.npz",
        (
            "md5:3aee1c93c6a4157d9fa8d96ed5ea57e7+e5bf7e6ed886ddb93f4bfb0caf5712a4"
            "+dd41112160bdddc4c4395bf87705e1f8+f07cdb00dc74b61c2d8daaeadae32f01",
        ),
        split="NOT the original split: 11996 / 2000 rows, shuffled with a fixed seed",
    ),
}

_MNIST = ("Y. LeCun, C. Cortes, C. Burges: the MNIST database", "CC BY-SA 3.0")
_FASHION = ("H. Xiao, K. Rasul, R. Vollgraf: Fashion-MNIST (Zalando Research)", "MIT")
_GARMENTS = (
    "T-shirt/top", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot",
)  # fmt: skip

_ENTRIES = (
    Entry(
        "breast-cancer",
        "Breast Cancer Wisconsin (original)",
        ("breast-cancer",),
        ("benign", "malignant"),
        "W. H. Wolberg, UCI Machine Learning Repository; the 16 rows with missing values are dropped, "
        "feature 0 is the patient id (drop_id=True leaves it out)",
        UCI,
    ),
    Entry(
        "diabetes",
        "Pima Indians diabetes",
        ("diabetes",),
        ("healthy", "diabetic"),
        "National Institute of Diabetes and Digestive and Kidney Diseases (NIDDK)",
        "CC0",
    ),
    Entry(
        "spambase",
        "Spambase: word and capital frequencies of e-mails",
        ("spambase",),
        ("ham", "spam"),
        "M. Hopkins, E. Reeber, G. Forman, J. Suermondt (Hewlett-Packard Labs), UCI",
        UCI,
    ),
    Entry(
        "fashion-shoes",
        "Fashion-MNIST, sandals (class 1) against sneakers",
        ("fashion-shoes", "fashion-mnist"),
        ("sneaker", "sandal"),
        *_FASHION,
        pair=(5, 7),
        image=True,
    ),
    Entry(
        "mnist-1-5",
        "MNIST, digit 1 (class 1) against 5",
        ("mnist",),
        ("5", "1"),
        *_MNIST,
        pair=(1, 5),
        image=True,
    ),
    Entry(
        "mnist-2-6",
        "MNIST, digit 2 (class 1) against 6",
        ("mnist",),
        ("6", "2"),
        *_MNIST,
        pair=(2, 6),
        image=True,
    ),
    Entry("mnist", "MNIST, ten digits", ("mnist",), tuple("0123456789"), *_MNIST, image=True),
    Entry("fashion-mnist", "Fashion-MNIST, ten garments", ("fashion-mnist",), _GARMENTS, *_FASHION, image=True),
)

ENTRIES = {entry.name: entry for entry in _ENTRIES}

FEATURE_NAMES = {
    "breast-cancer": (
        "patient_id", "clump_thickness", "cell_size", "cell_shape", "adhesion", "epithelial_size",
        "bare_nuclei", "bland_chromatin", "normal_nucleoli", "mitoses",
    ),
}  # fmt: skip
