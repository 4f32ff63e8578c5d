# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

import sys

import h5py
import numpy as np
import pytest
import scipy.io

from physicsnemo_cano.datapipes.generation import save_new
from physicsnemo_cano.datapipes.matlab import MatlabFile, write_matlab

SHAPES = {"coeff": (6, 5, 4), "sol": (6, 5, 4, 3)}


def write_v5(path, arrays):
    scipy.io.savemat(path, arrays, do_compression=True)
    return path


def write_v73(path, arrays):
    """As MATLAB does: a text of 512 bytes before HDF5 begins, axes reversed, the class named."""
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, array in arrays.items():
            dataset = file.create_dataset(name, data=array.T, compression="gzip")
            kind = {"float64": "double", "float32": "single"}[str(array.dtype)]
            dataset.attrs["MATLAB_class"] = np.bytes_(kind)
    with open(path, "r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM")
    return path


WRITERS = [write_v5, write_v73]


@pytest.fixture(params=[np.float32, np.float64])
def arrays(request):
    random = np.random.default_rng(0)
    return {name: random.normal(size=shape).astype(request.param) for name, shape in SHAPES.items()}


def test_both_kinds_hold_the_same(arrays, tmp_path):
    expected = {"coeff": ("n", 5, 4), "sol": ("n", 5, 4, "times")}
    for write in WRITERS:
        with MatlabFile(write(tmp_path / f"{write.__name__}.mat", arrays), expected) as file:
            assert file.shapes == SHAPES
            for name, array in arrays.items():
                read = file[name]
                assert (read.shape, read.dtype, len(read)) == (array.shape, array.dtype, 6)
                np.testing.assert_array_equal(read[:], array)
                np.testing.assert_array_equal(read[2], array[2])
                np.testing.assert_array_equal(read[-1, 3], array[-1, 3])
                np.testing.assert_array_equal(read[1:4, ::2, 1], array[1:4, ::2, 1])


def test_version_73_reads_what_is_sliced(arrays, tmp_path):
    path = write_v73(tmp_path / "a.mat", arrays)
    with MatlabFile(path, {"coeff": ("n", "i", "j")}) as file:
        coeff = file["coeff"]
        part = coeff[:2]
    np.testing.assert_array_equal(part, arrays["coeff"][:2])
    with pytest.raises(OSError, match="read data"):
        coeff[0]


def test_written_as_matlab_does(arrays, tmp_path):
    reference = write_v73(tmp_path / "reference.mat", arrays)
    write_matlab(tmp_path / "path.mat", arrays)
    save_new(tmp_path / "file.mat", lambda file: write_matlab(file, arrays))
    for name in ("path.mat", "file.mat"):
        with h5py.File(tmp_path / name) as found, h5py.File(reference) as expected:
            assert found.userblock_size == expected.userblock_size == 512
            assert found.keys() == expected.keys()
            for key in SHAPES:
                np.testing.assert_array_equal(found[key][:], expected[key][:])
                assert found[key].attrs["MATLAB_class"] == expected[key].attrs["MATLAB_class"]
                assert found[key].chunks == (*SHAPES[key][:0:-1], 1)
        header = (tmp_path / name).read_bytes()[:128]
        assert header.startswith(b"MATLAB 7.3 MAT-file")
        assert header[124:] == b"\x00\x02IM"


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize(
    "expected",
    [
        {"coeff": ("n", 5, 4), "pressure": ("n", 5, 4)},
        {"coeff": ("n", 4, 5)},
        {"coeff": ("n", 5)},
        {"coeff": ("n", "n", 4)},
        {"coeff": ("n", "s", 4), "sol": ("n", "t", "s", 3)},
    ],
)
def test_another_layout_is_refused(write, expected, tmp_path):
    arrays = {name: np.zeros(shape) for name, shape in SHAPES.items()}
    path = write(tmp_path / "wrong.mat", arrays)
    with pytest.raises(ValueError, match=r"wrong\.mat holds") as error:
        MatlabFile(path, expected, hint="Get it elsewhere.")
    message = str(error.value)
    assert "coeff (6, 5, 4), sol (6, 5, 4, 3), expected" in message
    assert f"expected coeff {expected['coeff']}".replace("'", "") in message
    assert message.endswith("Get it elsewhere.")


def test_a_structure_is_no_array(tmp_path):
    path = tmp_path / "struct.mat"
    with h5py.File(path, "w") as file:
        file["coeff/values"] = np.zeros(3)
    with pytest.raises(ValueError, match=r"holds coeff \(no array\), expected coeff \(n,\)"):
        MatlabFile(path, {"coeff": ("n",)})


def test_no_file_and_no_matlab_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"No file .*absent\.mat\. Get it"):
        MatlabFile(tmp_path / "absent.mat", {}, hint="Get it elsewhere.")
    for name, content in (("text", b"coeff, sol" * 40), ("empty", b""), ("hdf5", b"\x89HDF\r\n")):
        path = tmp_path / f"{name}.mat"
        path.write_bytes(content)
        with pytest.raises(ValueError, match=rf"{name}\.mat is no MATLAB file"):
            MatlabFile(path, {"coeff": ("n",)})
    whole = write_v73(tmp_path / "cut.mat", {"coeff": np.zeros((100, 100))}).read_bytes()
    (tmp_path / "cut.mat").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=r"cut\.mat is no MATLAB file"):
        MatlabFile(tmp_path / "cut.mat", {"coeff": ("n", "m")})


def test_scipy_is_named_where_it_is_needed(tmp_path, monkeypatch):
    arrays = {"coeff": np.ones((2, 3))}
    old, new = (write(tmp_path / f"{write.__name__}.mat", arrays) for write in WRITERS)
    monkeypatch.setitem(sys.modules, "scipy", None)
    with MatlabFile(new, {"coeff": (2, 3)}) as file:
        np.testing.assert_array_equal(file["coeff"][:], arrays["coeff"])
    with pytest.raises(ImportError, match=r"need scipy: pip install physicsnemo-cano\[examples\]"):
        MatlabFile(old, {"coeff": (2, 3)})
