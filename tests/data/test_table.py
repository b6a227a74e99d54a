"""A user's own table: what is read, what is brought within its bounds, and what is refused with which sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anechoic.data import federate
from anechoic.data.table import TableForm, load_table, read_records
from anechoic.errors import BadInput

PEOPLE = """age,income,clinic,sick
1,3,north,yes
2,4,10,no
3,5,2,no
4,6,north,yes
5,7,10,no
6,8,2,yes
"""


def write(directory: Path, text: str, name: str = "people.csv") -> Path:
    path = directory / name
    path.write_text(text, encoding="utf-8")
    return path


def form(**changes: Any) -> TableForm:
    settings: dict[str, Any] = {
        "label": "sick",
        "machine": "clinic",
        "bound": 5.0,
        "classes": ("no", "yes"),
        "test_fraction": 0.5,
    }
    return TableForm(**(settings | changes))


def test_records_are_scaled_down_one_by_one_and_only_where_longer(tmp_path: Path) -> None:
    records = read_records(write(tmp_path, PEOPLE), form(), "classes")
    given = np.array([[1, 3], [2, 4], [3, 5], [4, 6], [5, 7], [6, 8]], dtype=float)
    norms = np.linalg.norm(given, axis=1, keepdims=True)
    np.testing.assert_allclose(records.features, given * np.minimum(1, 5 / norms), rtol=1e-9)
    assert records.features[:2].tolist() == given[:2].tolist()
    assert records.labels.tolist() == [1, 0, 0, 1, 0, 1]


def test_cells_are_clipped_to_declared_limits_and_the_corner_is_the_bound(tmp_path: Path) -> None:
    limits = form(bound=None, lower=(2.0, 0.0), upper=(4.0, 5.0))
    table = load_table(write(tmp_path, PEOPLE), limits, "classes")
    features = np.concatenate([table.dataset.train.features, table.dataset.test.features])
    assert features.min(axis=0).tolist() == [2, 3]
    assert features.max(axis=0).tolist() == [4, 5]
    assert table.dataset.bound == pytest.approx(41**0.5, rel=1e-9)


def test_declared_limits_are_stretched_to_one_and_nothing_else_is_asked_of_the_records(tmp_path: Path) -> None:
    limits = form(bound=None, lower=(2.0, 0.0), upper=(4.0, 5.0), scale=True)
    records = read_records(write(tmp_path, PEOPLE), limits, "classes")
    np.testing.assert_allclose(records.features[:3], np.array([[-1.0, 0.2], [-1.0, 0.6], [0.0, 1.0]]), atol=1e-12)
    assert limits.limit(2) == pytest.approx(2**0.5, rel=1e-9)
    assert np.linalg.norm(records.features, axis=1).max() <= limits.limit(2)
    still = form(bound=None, lower=(2.0, 3.0), upper=(4.0, 3.0), scale=True)
    assert (read_records(write(tmp_path, PEOPLE), still, "classes").features[:, 1] == 0).all()
    with pytest.raises(BadInput, match=r"scale needs table\.lower"):
        form(scale=True)


def test_no_other_record_changes_when_one_is_replaced(tmp_path: Path) -> None:
    one = read_records(write(tmp_path, PEOPLE), form(), "classes")
    other = read_records(write(tmp_path, PEOPLE.replace("6,8", "1e300,-8")), form(), "classes")
    assert np.array_equal(one.features[:-1], other.features[:-1])
    np.testing.assert_allclose(other.features[-1], [5, 0], atol=1e-9)


def test_machines_keep_their_records_and_each_sets_its_own_share_aside(tmp_path: Path) -> None:
    rows = "".join(f"{i},{i},{'abc'[i % 3]},no\n" for i in range(30))
    table = load_table(write(tmp_path, "age,income,clinic,sick\n" + rows), form(bound=100.0), "classes")
    assert table.machines == ("a", "b", "c")
    federation = federate(table.dataset.train, assignment=table.assignment)
    assert federation.sizes.tolist() == [5, 5, 5]
    for machine in range(3):
        assert (federation.shard(machine).features[:, 0] % 3 == machine).all()
    assert np.bincount(table.dataset.test.features[:, 0].astype(int) % 3).tolist() == [5, 5, 5]


def test_machines_that_are_numbers_stand_by_size_before_words(tmp_path: Path) -> None:
    assert load_table(write(tmp_path, PEOPLE), form(), "classes").machines == ("2", "10", "north")


def test_a_columns_name_is_told_shortly_however_long_it_is(tmp_path: Path) -> None:
    path = write(tmp_path, f"{'x' * 20_000},clinic,sick\nmany,north,no\n1,2,yes\n")
    with pytest.raises(BadInput, match="which is not a number") as caught:
        load_table(path, form(bound=1.0), "classes")
    assert len(str(caught.value)) < 1000


def test_the_split_is_a_function_of_its_seed_alone(tmp_path: Path) -> None:
    path = write(tmp_path, PEOPLE)
    first, again, other = (load_table(path, form(split_seed=seed), "classes") for seed in (1, 1, 2))
    assert np.array_equal(first.dataset.train.features, again.dataset.train.features)
    assert not np.array_equal(first.dataset.train.features, other.dataset.train.features)


def test_a_second_file_is_the_test_set_and_need_not_name_machines(tmp_path: Path) -> None:
    test = write(tmp_path, "age,income,sick\n9,9,no\n", "later.csv")
    table = load_table(write(tmp_path, PEOPLE), form(test=str(test), bias=True), "classes")
    assert (table.dataset.train.size, table.dataset.test.size, table.dataset.dimension_features) == (6, 1, 3)
    assert table.dataset.test.features[0, 2] == 1


@pytest.mark.parametrize(
    ("kind", "changes", "expected"),
    [
        ("signs", {}, [1, -1, -1, 1, -1, 1]),
        ("signs", {"label": "age", "classes": None}, None),
        ("numbers", {"label": "age", "classes": None}, [1, 2, 3, 4, 4.5, 4.5]),
        ("classes", {"label": "age", "classes": (6, 5, 4, 3, 2, 1)}, [5, 4, 3, 2, 1, 0]),
    ],
)
def test_labels_become_what_the_loss_needs(
    kind: Any, changes: dict[str, Any], expected: list[float] | None, tmp_path: Path
) -> None:
    path, spare = write(tmp_path, PEOPLE), {"features": ("income",)}
    if expected is None:
        with pytest.raises(BadInput, match=r"row 2, column 'age' holds '2', which is not one of the classes -1, 1"):
            read_records(path, form(**changes, **spare), kind)
    else:
        assert read_records(path, form(**changes, **spare), kind, label_bound=4.5).labels.tolist() == expected


def test_parquet_gives_the_same_as_csv(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = list(zip(*(line.split(",") for line in PEOPLE.splitlines()[1:]), strict=True))
    data = {"age": [*map(int, columns[0])], "income": [*map(float, columns[1])], "clinic": columns[2]}
    path = tmp_path / "people.parquet"
    parquet.write_table(arrow.table(data | {"sick": columns[3]}), path)
    one, other = load_table(write(tmp_path, PEOPLE), form(), "classes"), load_table(path, form(), "classes")
    assert np.array_equal(one.dataset.train.features, other.dataset.train.features)
    assert np.array_equal(one.dataset.train.labels, other.dataset.train.labels)
    assert one.machines == other.machines
    parquet.write_table(arrow.table(data | {"age": [1, 2, None, 4, 5, 6], "sick": columns[3]}), path)
    with pytest.raises(BadInput, match=r"people.parquet, row 3, column 'age' holds no value"):
        load_table(path, form(), "classes")
    parquet.write_table(arrow.table(data | {"age": list("abcdef"), "sick": columns[3]}), path)
    with pytest.raises(BadInput, match="column 'age' holds string, not numbers"):
        load_table(path, form(), "classes")
    path.write_bytes(b"PAR1 and no more")
    with pytest.raises(BadInput, match=r"people.parquet is not a Parquet file"):
        load_table(path, form(), "classes")


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("2,4,10,no", "2,,10,no", r"people.csv, row 2, column 'income' holds no value"),
        ("2,4,10,no", "2,nan,10,no", r"people.csv, row 2, column 'income' holds no value"),
        ("2,4,10,no", "2,inf,10,no", r"people.csv, row 2, column 'income' holds 'inf', which is not a finite number"),
        ("2,4,10,no", "2,lots,10,no", r"people.csv, row 2, column 'income' holds 'lots', which is not a number"),
        ("2,4,10,no", "2,4,10,maybe", r"row 2, column 'sick' holds 'maybe', which is not one of the classes no, yes"),
        ("2,4,10,no", "2,4,,no", r"row 2, column 'clinic' holds no value"),
        ("2,4,10,no", "2,4,10,", r"row 2, column 'sick' holds no value"),
        ("2,4,10,no", "2,4,10", r"people.csv, row 2 has 3 cells, the header has 4"),
        ("2,4,10,no", "2,4,10,no,9", r"people.csv, row 2 has 5 cells, the header has 4"),
        ("2,4,10,no", '2,"4,10,no', r"people.csv is not a CSV file"),
        ("age,income", "age,age", r"people.csv: two columns are called 'age'"),
        ("age,income", "age,", r"people.csv: column 2 has no name"),
        ("clinic,sick", "clinic,sic", r"there is no column 'sick'; did you mean 'sic'\?"),
        (PEOPLE, "", r"people.csv: there is no column 'sick'"),
        (PEOPLE, "age,income,clinic,sick\n", r"people.csv holds no records"),
        (PEOPLE, "clinic,sick\nx,no\n", r"no columns of features"),
    ],
)
def test_what_is_wrong_with_a_file_is_one_sentence(old: str, new: str, sentence: str, tmp_path: Path) -> None:
    path = write(tmp_path, PEOPLE.replace(old, new))
    with pytest.raises(BadInput, match=sentence) as caught:
        load_table(path, form(), "classes")
    assert "\n" not in str(caught.value)


def test_bad_rows_are_counted_across_the_blocks_in_which_a_file_is_read(tmp_path: Path) -> None:
    path = write(tmp_path, "a,sick\n" + "1,no\n" * 9000 + "x,no\n" + "1,no\n" * 10)
    with pytest.raises(BadInput, match="row 9001, column 'a' holds 'x'"):
        read_records(path, TableForm(label="sick", bound=1.0, classes=("no", "yes")), "classes")


def test_files_that_are_no_tables_are_refused(tmp_path: Path) -> None:
    (tmp_path / "latin.csv").write_bytes("a,sick\n1,ä\n".encode("latin-1"))
    with pytest.raises(BadInput, match="not a text file in UTF-8"):
        load_table(tmp_path / "latin.csv", form(), "classes")
    with pytest.raises(BadInput, match=r"neither a .csv nor a .parquet"):
        load_table(tmp_path / "people.xlsx", form(), "classes")
    for name in ("none.csv", "none.parquet"):
        with pytest.raises(FileNotFoundError):
            load_table(tmp_path / name, form(), "classes")


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"bound": None}, "table.bound, or table.lower and table.upper, must be given"),
        ({"bound": 0.0}, "table.bound must be a finite number above 0"),
        ({"lower": 1.0}, "given together"),
        ({"classes": ("no",)}, "two or more different labels"),
        ({"classes": (1, "1.0")}, "two or more different labels"),
        ({"delimiter": ";;"}, "one character"),
        ({"test_fraction": 1.5}, "test_fraction must be a finite number from 0 to 1"),
        ({"features": ("age", "sick")}, "table.features must not name 'sick'"),
        ({"lower": (0.0, 1.0, 2.0), "upper": 3.0}, "one for each of 2 features"),
        ({"lower": 4.0, "upper": 3.0}, "must not be above table.upper"),
        ({"lower": 0.0, "upper": 0.0, "bound": None}, "nothing but zeros"),
        ({"test_fraction": 0.1}, "leaves no records"),
        ({"classes": None}, "table.classes must list all labels"),
    ],
)
def test_declarations_that_cannot_be_used_are_refused(changes: dict[str, Any], sentence: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=sentence):
        load_table(write(tmp_path, PEOPLE), form(**changes), "classes")
