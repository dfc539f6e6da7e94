"""The data sets: right arrays, the paper's preprocessing, downloads, and clear words when there are none."""

from __future__ import annotations

import gzip
import hashlib
import http.server
import json
import os
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path

import numpy as np
import pytest

from treeproof import datasets
from treeproof._errors import InvalidInputError
from treeproof.datasets import catalogue, checksums, openml, preprocess, raw

PLACES = [
    os.environ.get("TREEPROOF_SHARED"),
    *(up / "shared" for up in Path(__file__).resolve().parents[2:4]),
]
SHARED_DATA = next((Path(place) / "data" for place in PLACES if place and Path(place).is_dir()), Path("nowhere"))

needs_shared = pytest.mark.skipif(not SHARED_DATA.is_dir(), reason="needs the prepared image files")


@pytest.fixture(autouse=True)
def own_folders(monkeypatch, tmp_path):
    """No test may read a user's cache or folder, or fill them."""
    monkeypatch.delenv("TREEPROOF_DATA", raising=False)
    monkeypatch.setenv("TREEPROOF_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize(
    ("name", "train", "test", "constant"),
    [
        ("breast-cancer", (546, 10), (137, 10), 25.55),
        ("diabetes", (614, 8), (154, 8), 35.71),
        ("spambase", (3680, 57), (921, 57), None),
    ],
)
def test_embedded_tables_have_the_papers_split_and_scaling(name, train, test, constant):
    """Shapes, min-max by the training rows only, and the paper's error of the constant classifier."""
    data = datasets.load(name)
    assert data.X_train.shape == train
    assert data.X_test.shape == test
    assert data.where == "the package"
    np.testing.assert_array_equal(data.X_train.min(axis=0), 0.0)
    np.testing.assert_array_equal(data.X_train.max(axis=0), 1.0)
    assert set(np.unique(data.y_train)) == {0, 1}
    assert len(data.feature_names) == data.n_features
    assert data.origin
    assert data.licence
    if constant is not None:
        assert round(100 * data.constant_error, 2) == constant


def test_scaling_leads_back_to_the_raw_numbers():
    """The first patient of the file comes back in data units."""
    data = datasets.load("breast-cancer")
    first = data.scaling.to_data_units(data.X_train[:1])
    np.testing.assert_allclose(first[0], [1000025, 5, 1, 1, 1, 2, 1, 3, 1, 1], rtol=1e-12)
    np.testing.assert_allclose(data.scaling.from_data_units(first), data.X_train[:1], atol=1e-15)
    assert data.class_names[data.y_train[0]] == "benign"


def test_test_rows_are_not_clipped_into_the_training_range():
    """Test values keep leaving [0, 1], as in the paper's experiments."""
    data = datasets.load("breast-cancer")
    assert data.X_test.max() > 1.0 or data.X_test.min() < 0.0


def test_drop_id_leaves_out_the_patient_number():
    """Feature 0 of breast-cancer is the id; without it the rest is the same."""
    whole, without = datasets.load("breast-cancer"), datasets.load("breast-cancer", drop_id=True)
    assert whole.feature_names[0] == "patient_id"
    assert without.feature_names == whole.feature_names[1:]
    np.testing.assert_array_equal(without.X_test, whole.X_test[:, 1:])
    with pytest.raises(InvalidInputError, match="drop_id must be False except for breast-cancer"):
        datasets.load("diabetes", drop_id=True)


def test_spambase_is_shuffled_the_same_way_every_time():
    """Both parts hold both classes, and two loads are equal."""
    one, two = datasets.load("spambase"), datasets.load("spambase")
    np.testing.assert_array_equal(one.X_train, two.X_train)
    assert 0.3 < one.y_test.mean() < 0.5
    assert one.feature_names[-1] == "capitalTotal"


def test_float32_rows_are_the_float64_rows_rounded_once():
    """dtype= changes the type only."""
    wide, narrow = datasets.load("diabetes"), datasets.load("diabetes", dtype="float32")
    np.testing.assert_array_equal(wide.X_test.astype(np.float32), narrow.X_test)
    levels = np.arange(256, dtype=np.uint8)[None, :]
    np.testing.assert_array_equal(
        preprocess.pixels(levels, "float64").astype(np.float32), preprocess.pixels(levels, "float32")
    )


def test_wrong_arguments_are_named():
    """An unknown name, type or folder gives one line that says what is allowed."""
    for ask in (datasets.load, datasets.source):
        for name in ("titanic", ["diabetes"], None):
            with pytest.raises(InvalidInputError, match="name must be one of breast-cancer, diabetes"):
                ask(name)
    with pytest.raises(InvalidInputError, match="dtype must be"):
        datasets.load("diabetes", dtype="float16")
    with pytest.raises(InvalidInputError, match="folder must be an existing folder"):
        datasets.load("diabetes", folder="/nowhere/at/all")


def test_treeproof_data_is_looked_at_first(monkeypatch, tmp_path):
    """A file in TREEPROOF_DATA wins over the package, and a changed one is refused unless meant."""
    path = tmp_path / "diabetes.csv"
    packed = Path(datasets.__file__).parent / "tables" / "diabetes.csv.gz"
    text = gzip.decompress(packed.read_bytes()).decode()
    path.write_text(text)
    monkeypatch.setenv("TREEPROOF_DATA", str(tmp_path))
    assert datasets.load("diabetes").where == str(path)
    path.write_text(text.replace("6,148,72", "6,149,72", 1))
    with pytest.raises(InvalidInputError, match=r"must have the checksum .* load with verify=False"):
        datasets.load("diabetes")
    assert datasets.load("diabetes", verify=False).X_train.shape == (614, 8)
    for content in (b"a,b\n1,x\n", b"", b"a,b\n", b"\xff\xfe\x00\x80", b"a,b\n1,2\n1,2,3\n"):
        path.write_bytes(content)
        with pytest.raises(InvalidInputError, match=r"diabetes.csv must hold the (comma-separated )?diabetes table"):
            datasets.load("diabetes")
    monkeypatch.setenv("TREEPROOF_DATA", str(tmp_path / "gone"))
    with pytest.raises(InvalidInputError, match="TREEPROOF_DATA must be an existing folder"):
        datasets.load("diabetes")


@needs_shared
@pytest.mark.parametrize(
    ("name", "train", "test"),
    [("mnist-1-5", 12163, 2027), ("mnist-2-6", 11876, 1990), ("fashion-shoes", 11996, 2000)],
)
def test_image_pairs_of_a_prepared_folder(name, train, test):
    """Row counts of the paper's pairs, k/255 in float64, checksums verified on the way."""
    data = datasets.load(name, folder=SHARED_DATA)
    assert (len(data.X_train), len(data.X_test)) == (train, test)
    np.testing.assert_array_equal(data.X_test, np.rint(data.X_test * 255) / 255.0)
    assert data.X_train.max() == 1.0
    assert data.image_shape == (28, 28)
    assert set(np.unique(data.y_test)) == {0, 1}


@needs_shared
def test_ten_classes_and_the_positive_class_of_a_pair():
    """In 1 vs 5 class 1 is the digit 1; the ten-class set keeps its labels."""
    pair = datasets.load("mnist-1-5", folder=SHARED_DATA, dtype="float32")
    ten = datasets.load("mnist", folder=SHARED_DATA, dtype="float32")
    assert ten.n_classes == 10
    assert pair.class_names == ("5", "1")
    np.testing.assert_array_equal(pair.X_test[pair.y_test == 1], ten.X_test[ten.y_test == 1])


def small_images(seed: int = 0):
    rng = np.random.default_rng(seed)
    y = np.tile(np.array([1, 2, 5, 6, 7], dtype=np.uint8), 4)
    return rng.integers(0, 256, (20, 784)).astype(np.uint8), y


class FakeOpenml(http.server.BaseHTTPRequestHandler):
    """Answers what `fetch_openml` asks for, from `answers` (path to bytes)."""

    answers: dict[str, bytes] = {}
    asked: list[str] = []

    def do_GET(self):
        type(self).asked.append(self.path)
        body = self.answers.get(self.path)
        self.send_response(200 if body is not None else 404)
        self.end_headers()
        if body is not None:
            self.wfile.write(body)

    def log_message(self, *args):
        pass


def openml_answers(X, y) -> dict[str, bytes]:
    """The four pages of OpenML's data set 554, with other rows."""
    header = "@RELATION mnist\n" + "".join(f"@ATTRIBUTE p{i} INTEGER\n" for i in range(784))
    rows = "".join(",".join(map(str, [*row, label])) + "\n" for row, label in zip(X, y, strict=True))
    arff = (header + "@ATTRIBUTE class {0,1,2,3,4,5,6,7,8,9}\n@DATA\n" + rows).encode()
    about = {
        "id": "554", "name": "mnist_784", "version": "1", "description": "tiny", "format": "ARFF",
        "status": "active", "file_id": "9", "default_target_attribute": "class",
        "md5_checksum": hashlib.md5(arff).hexdigest(),
        "url": "https://www.openml.org/data/v1/download/9/mnist.arff",
    }  # fmt: skip
    column = {
        "data_type": "numeric",
        "is_target": "false",
        "is_ignore": "false",
        "is_row_identifier": "false",
        "number_of_missing_values": "0",
    }
    columns = [{**column, "index": str(i), "name": f"p{i}"} for i in range(784)]
    columns.append({**column, "index": "784", "name": "class", "data_type": "nominal", "is_target": "true"})
    qualities = {"quality": [{"name": "NumberOfInstances", "value": "20.0"}]}
    return {
        "/api/v1/json/data/554": json.dumps({"data_set_description": about}).encode(),
        "/api/v1/json/data/features/554": json.dumps({"data_features": {"feature": columns}}).encode(),
        "/api/v1/json/data/qualities/554": json.dumps({"data_qualities": qualities}).encode(),
        "/data/v1/download/9/mnist.arff": arff,
    }


@pytest.fixture
def local_openml(monkeypatch):
    """A loopback OpenML that has a tiny "mnist" of 15 + 5 rows; every request really goes through HTTP."""
    import sklearn.datasets._openml as module

    X, y = small_images()
    FakeOpenml.answers, FakeOpenml.asked = openml_answers(X, y), []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), FakeOpenml)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def to_loopback(request):
        address = request if isinstance(request, str) else request.full_url
        local = address.replace("https://www.openml.org", f"http://127.0.0.1:{server.server_port}")
        return opener.open(local, timeout=10)

    monkeypatch.setattr(module, "urlopen", to_loopback)
    monkeypatch.setattr(openml, "TRAINING_ROWS", 15)
    yield X, y
    server.shutdown()
    server.server_close()
    thread.join()


def accept(monkeypatch, checksum: str) -> None:
    source = catalogue.SOURCES["mnist"]
    changed = catalogue.Source(source.file, (checksum,), openml=source.openml, split=source.split)
    monkeypatch.setitem(catalogue.SOURCES, "mnist", changed)


def test_download_is_checked_cached_and_not_repeated(local_openml, monkeypatch):
    """From a local server: rows and labels arrive, the second load reads the cache and asks nobody."""
    X, y = local_openml
    accept(monkeypatch, checksums.of_images(X[:15], y[:15], X[15:], y[15:]))
    data = datasets.load("mnist-1-5")
    keep = np.isin(y[:15], (1, 5))
    np.testing.assert_array_equal(data.X_train, X[:15][keep] / 255.0)
    np.testing.assert_array_equal(data.y_train, (y[:15][keep] == 1).astype(int))
    assert data.where == "OpenML data set 554"
    asked = len(FakeOpenml.asked)
    assert asked >= 3
    again = datasets.load("mnist-1-5", download=False)
    np.testing.assert_array_equal(again.X_test, data.X_test)
    assert again.where.endswith("mnist.npz")
    assert len(FakeOpenml.asked) == asked
    assert [path.name for path in openml.cache_folder().iterdir()] == ["mnist.npz"]


def test_download_with_other_arrays_is_refused_and_not_kept(local_openml):
    """Arrays that are not MNIST do not get into the cache."""
    with pytest.raises(InvalidInputError, match="mnist arrays in OpenML data set 554 must have the checksum"):
        datasets.load("mnist-2-6")
    assert not openml.cache_folder().exists()


def test_damaged_download_is_refused(local_openml):
    """A body that does not have OpenML's checksum is an error that names the folder to fill."""
    path = "/data/v1/download/9/mnist.arff"
    FakeOpenml.answers[path] = FakeOpenml.answers[path][:-50]
    with pytest.raises(datasets.DataUnavailableError, match=r"Put mnist.npz .* TREEPROOF_DATA"):
        datasets.load("mnist")


def test_missing_page_is_a_clear_message(local_openml):
    """A server that answers 404 ends in the same message."""
    FakeOpenml.answers.clear()
    with pytest.raises(datasets.DataUnavailableError, match="'mnist' is not on this machine: downloading"):
        datasets.load("mnist")


def test_without_network_only_the_tables_load(tmp_path):
    """In a fresh process whose every connection fails: tables load, images name the folder to fill."""
    code = (
        "import socket, sys\n"
        "def refuse(*a, **k): raise OSError('no network in this test')\n"
        "socket.socket.connect = refuse; socket.create_connection = refuse; socket.getaddrinfo = refuse\n"
        "from treeproof import datasets\n"
        "print(len(datasets.load('breast-cancer').X_train), len(datasets.load('spambase').X_train))\n"
        "try:\n    datasets.load('fashion-shoes')\n"
        "except datasets.DataUnavailableError as error:\n    print(error)\n"
    )
    environment = {**os.environ, "TREEPROOF_CACHE": str(tmp_path / "my-cache")}
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-c", code],
        env=environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first == "546 3680"
    assert "fashion_shoes.npz or fashion_mnist.npz" in second
    assert str(tmp_path / "my-cache") in second
    assert "TREEPROOF_DATA" in second


def test_download_false_asks_nobody(monkeypatch):
    """download=False never touches the network."""
    monkeypatch.setattr(openml, "fetch", lambda number: pytest.fail("asked the network"))
    with pytest.raises(datasets.DataUnavailableError, match="downloading is switched off"):
        datasets.load("mnist", download=False)


@pytest.mark.parametrize("kind", ["not a zip", "other keys", "wrong shape"])
def test_wrong_npz_files_are_named(tmp_path, kind):
    """A file that is no image set is refused with its path."""
    path = tmp_path / "mnist.npz"
    X, y = small_images()
    if kind == "not a zip":
        path.write_bytes(b"hello")
    elif kind == "other keys":
        np.savez(path, X=X, y=y)
    else:
        np.savez(path, X_train=X.astype(float), y_train=y, X_test=X, y_test=y)
    with pytest.raises(InvalidInputError, match=str(path)):
        datasets.load("mnist", folder=tmp_path)


def test_checksums_see_every_change():
    """One value, one label or two swapped rows change the checksum."""
    X, y = small_images()
    base = checksums.of_images(X, y, X, y)
    other = X.copy()
    other[3, 100] ^= 1
    assert checksums.of_images(other, y, X, y) != base
    assert checksums.of_images(X, y[::-1], X, y) != base
    rows = np.arange(6.0).reshape(3, 2)
    assert len({checksums.of_table(rows), checksums.of_table(rows[::-1]), checksums.of_table(rows.T)}) == 3


def test_datasets_do_not_import_scikit_learn():
    """The tables load without scikit-learn or numba being imported."""
    code = (
        "import sys, treeproof.datasets as d; d.load('diabetes'); "
        "print('sklearn' in sys.modules, 'numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "False False"


def test_prepared_folder_prefers_the_argument(monkeypatch, tmp_path):
    """folder= wins over TREEPROOF_DATA; without either there is none."""
    assert raw.prepared_folder(None) is None
    monkeypatch.setenv("TREEPROOF_DATA", str(tmp_path))
    assert raw.prepared_folder(None) == tmp_path
    other = tmp_path / "other"
    other.mkdir()
    assert raw.prepared_folder(other) == other
