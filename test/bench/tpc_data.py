"""The data and the queries of TPC-H and TPC-DS, as DuckDB makes them, for tpc.sh.

    tpc_data.py schema SUITE                    CREATE TABLE statements
    tpc_data.py queries SUITE FOLDER            a file NN.sql for each query
    tpc_data.py data SUITE SCALE PARTS PART FOLDER
                                                a file TABLE.PART.csv for each table that has rows in
                                                this part; parts are numbered from 0

SUITE is tpch or tpcds.  PostgreSQL takes all queries and columns as they are.  Needs DuckDB and its extensions of the same names as Python packages.
"""
import glob
import importlib
import os
import sys

import duckdb

GENERATORS = {"tpch": "dbgen", "tpcds": "dsdgen"}


def connect(suite):
    package = importlib.import_module("duckdb_extension_" + suite)
    pattern = os.path.join(os.path.dirname(package.__file__), "extensions", "*", suite + ".duckdb_extension")
    connection = duckdb.connect()
    connection.execute(f"LOAD '{glob.glob(pattern)[0]}'")
    return connection


def generate(suite, scale, parts, part):
    connection = connect(suite)
    connection.execute("SET threads = 1")
    arguments = f"sf={scale}"
    if parts > 1:
        # only dbgen can
        arguments += f", children={parts}, step={part}"
    connection.execute(f"CALL {GENERATORS[suite]}({arguments})")
    return connection


def tables(connection):
    return connection.execute("SELECT table_name, sql FROM duckdb_tables() ORDER BY table_name").fetchall()


def write_schema(suite):
    for _, sql in tables(generate(suite, 0, 1, 0)):
        print(sql.replace("CREATE TABLE", "CREATE UNLOGGED TABLE"))


def write_queries(suite, folder):
    for number, sql in connect(suite).execute(f"SELECT query_nr, query FROM {suite}_queries()").fetchall():
        with open(os.path.join(folder, f"{number:02}.sql"), "w", encoding="utf-8") as file:
            file.write(sql.strip().rstrip(";"))


def write_data(suite, scale, parts, part, folder):
    connection = generate(suite, scale, parts, part)
    for table, _ in tables(connection):
        if connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] > 0:
            connection.execute(f"COPY {table} TO '{folder}/{table}.{part}.csv' (FORMAT csv, HEADER false)")


def main(arguments):
    command, suite = arguments[:2]
    if command == "schema":
        write_schema(suite)
    elif command == "queries":
        write_queries(suite, arguments[2])
    elif command == "data":
        write_data(suite, arguments[2], int(arguments[3]), int(arguments[4]), arguments[5])
    else:
        sys.exit(__doc__)


main(sys.argv[1:])
