#!/bin/bash
# How long a client that asks for some rows waits for the first one, as drivers with a fetch size do.
#
#	portals.sh
#
# A client sends Parse, Bind and Execute for `SELECT id, p FROM t ORDER BY p COLLATE "C"`, and reads the first row: of Execute
# messages without a row limit, and of such with a limit of 1000 rows.  PostgreSQL runs the latter without workers.  Tables are
# BENCH_PATHS (default 3000000) paths and BENCH_WORDS (default 10000000) words.  Both sides may have 8 workers and 1 GB.
# Times are medians of BENCH_RUNS in ms.  For the other variables see lib.sh.
set -u
. "$(dirname "$0")/lib.sh"

bench_begin "$@"
bench_load_paths f "${BENCH_PATHS:-3000000}"
bench_load_words w "${BENCH_WORDS:-10000000}"
bench_ready

# first_row ROW-LIMIT SQL SETTING...
first_row()
{
	as_user perl -I"$root/test/t" -MTime::HiRes=time -e '
		use strict;
		use warnings;
		{
			# GpusortProtocol asks it for a port and a folder
			package Server;
			sub host { $ENV{PGHOST} }
			sub port { $ENV{PGPORT} }
		}
		require GpusortProtocol;
		my ($runs, $limit, $sql, @settings) = @ARGV;
		my @times;
		for (1 .. $runs)
		{
			my $client = GpusortProtocol->connect_to(bless({}, "Server"), user => $ENV{PGUSER});

			$client->query("SET $_") for @settings;
			my $start = time;
			$client->parse("", $sql)->bind("", "")->execute("", $limit)->put("H", "");
			my @messages = $client->receive("DE");
			push @times, 1000 * (time() - $start);
			die "no row" if $messages[-1][0] ne "D";
			close $client->{socket};
		}
		@times = sort { $a <=> $b } @times;
		printf "%.0f\n", $times[$#times / 2];' "$runs" "$@"
}

printf '\n%-8s %12s %12s %12s %12s\n' table 'pg all' 'pg limit' 'gpusort all' 'gpusort limit'
for table in f w; do
	row=()
	for on in off on; do
		for limit in 0 1000; do
			row+=("$(first_row $limit "SELECT id, p FROM $table ORDER BY p COLLATE \"C\"" "gpusort.enabled = $on" \
				"gpusort.force = $on" "max_parallel_workers_per_gather = 8" "work_mem = '1GB'")")
		done
	done
	printf '%-8s %12s %12s %12s %12s\n' $table "${row[@]}"
done
