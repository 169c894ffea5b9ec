"""Is the answer of a query the same without and with gpusort?  For tpc.sh.

    tpc_compare.py QUERY A B

QUERY is the file of the query, A and B are answers as CSV with column names.  Prints

    same        row by row
    same rows   the rows are the same and in the order that the query asks for, but equal
                ones stand otherwise
    ties        the same, but LIMIT took others of the rows that are equal to its last one
    DIFFERENT   none of these, and what differs
"""
import collections
import csv
import re
import sys


def split_list(text):
    """The items of a list, at commas outside of brackets."""
    items, depth, start = [], 0, 0
    for i, character in enumerate(text):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            items.append(text[start:i])
            start = i + 1
    return items + [text[start:]]


def outer_order(sql):
    """The items of the outermost ORDER BY, and whether there is a LIMIT."""
    depth, start = 0, None
    for match in re.finditer(r"\(|\)|\bORDER\s+BY\b", sql, re.IGNORECASE):
        if match.group() in "()":
            depth += 1 if match.group() == "(" else -1
        elif depth == 0:
            start = match.end()
    if start is None:
        return [], False
    clause, limit, _ = re.match(r"(.*?)(\bLIMIT\b\s*\d+\s*)?($)", sql[start:], re.IGNORECASE | re.DOTALL).groups()
    return split_list(clause), limit is not None


def key_columns(items, names):
    """The columns that hold the sort keys, up to the first key that is no column; and is that all?"""
    columns = []
    for item in items:
        item = re.sub(r"\s+(ASC|DESC)\b|\s+NULLS\s+(FIRST|LAST)\b", "", item, flags=re.IGNORECASE).strip()
        name = item.split(".")[-1].strip('"').lower()
        if item.isdigit():
            columns.append(int(item) - 1)
        elif names.count(name) == 1:
            columns.append(names.index(name))
        else:
            return columns, False
    return columns, True


def compare(sql, a, b):
    if a == b:
        return "same"
    if a[0] != b[0] or len(a) != len(b):
        return f"DIFFERENT: {len(a) - 1} rows and {len(b) - 1}"
    items, limit = outer_order(sql)
    columns, whole = key_columns(items, [name.lower() for name in a[0]])
    rows_a, rows_b = a[1:], b[1:]
    keys_a, keys_b = ([tuple(row[i] for i in columns) for row in rows] for rows in (rows_a, rows_b))
    if keys_a != keys_b:
        at = next(i for i, (x, y) in enumerate(zip(keys_a, keys_b)) if x != y)
        return f"DIFFERENT: sort keys {keys_a[at]} and {keys_b[at]} in row {at + 1}"
    if collections.Counter(map(tuple, rows_a)) == collections.Counter(map(tuple, rows_b)):
        return "same rows" if whole else f"same rows, {len(columns)} of {len(items)} sort keys compared"
    last = keys_a[-1]
    before_a, before_b = (collections.Counter(tuple(row) for row, key in zip(rows, keys_a) if key != last)
                          for rows in (rows_a, rows_b))
    if limit and whole and before_a == before_b:
        return "ties"
    return "DIFFERENT: rows, such as %s" % (list((before_a - before_b) or (before_b - before_a)) or [rows_a[-1]])[0:1]


def read(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def main(query, a, b):
    with open(query, encoding="utf-8") as file:
        print(compare(file.read(), read(a), read(b)))


main(*sys.argv[1:])
