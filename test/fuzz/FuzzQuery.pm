# Queries of the differential tester: a random ORDER BY list in a random shape of
# plan.
#
# A query is a hash:
#	shape, labels	for the report: kind of plan, kinds of sort keys
#	key				the sort keys
#	setup, cleanup	statements around both runs
#	settings		for both runs
#	run				statements that fill the table %R with the query's rows in the
#					order in which it returns them (its rows' order by ctid)
#	finish			statements that make %R of what "run" left; not by gpusort
#	explain			what to EXPLAIN in order to learn who sorts
#	sequence		columns of %R, with collation, that must be the same row by row
#	rows			"same": the rows as a whole are the same, in any order;
#					"subset": those of %R are among the rows of the query "full";
#					"none": not compared, for the query leaves open which of equal
#					values it returns
#	hidden			the sort keys are not in %R, but come by id from fuzz_keys
#	check			an expression over %R that must be true for both
#	cheap			gpusort is not forced, but its sorts cost nothing
#	min_rows		gpusort.min_rows
#	left			a key is of a type that gpusort leaves to PostgreSQL

package FuzzQuery;

use strict;
use warnings;

use FuzzRandom;
use FuzzTypes;

use base 'Exporter';
our @EXPORT = qw(random_query);

# ---- sort keys ----

sub direction
{
	return pick('', ' ASC', ' DESC') . pick('', '', ' NULLS FIRST', ' NULLS LAST');
}

# Of the columns given, under one of the collations given or any
sub random_key
{
	my ($columns, $using_allowed, @collations) = @_;
	my @long = grep { $_->{long} } @$columns;
	my $column = @long && chance(0.5) ? pick(@long) : pick(@$columns);
	my $key = { expr => $column->{name}, type => $column->{type}, label => $column->{label}, column => $column };

	if ($column->{type}{exprs} && !@collations && chance(0.25))
	{
		my $choice = pick(@{ $column->{type}{exprs} });

		$key->{expr} = sprintf $choice->[0], $column->{name};
		$key->{type} = result_type($column->{type}, $choice->[1]);
		$key->{label} = 'expression';
		delete $key->{column};
	}
	$key->{order} = direction();
	if ($key->{type}{collates} && (@collations || chance(0.75)))
	{
		$key->{collation} = @collations ? pick(@collations) : random_collation();
		$key->{expr} = "$key->{expr} COLLATE $key->{collation}";
	}
	$key->{expr} = "($key->{expr})";
	if ($using_allowed && $key->{type}{pattern} && chance(0.08))
	{
		$key->{order} = ' USING ' . pick('~<~', '~>~') . pick('', ' NULLS FIRST', ' NULLS LAST');
		$key->{equal} = ' COLLATE "C"';
	}
	$key->{equal} //= $key->{type}{compare_as} // '';
	return $key;
}

sub random_keys
{
	my ($table, $most, $using_allowed) = @_;
	my $n = weighted(1, 5, 2, 4, 3, 2, 4, 1);

	$n = $most if $n > $most;
	my @texts = grep { $_->{type}{collates} } @{ $table->{columns} };
	my @keys = map { random_key($table->{columns}, $using_allowed) } 1 .. $n;
	# text of a libc collation behind whatever there is
	push @keys, random_key(\@texts, 0, 'fuzz_en', 'fuzz_de') if @texts && $n < $most && chance(0.3);
	return @keys;
}

# ---- pieces of queries ----

# The sort keys under their names, as a select list
sub key_list
{
	my ($q) = @_;
	my $i = 0;

	return map { $i++; "$_->{expr} AS k$i" } @{ $q->{key} };
}

sub key_names
{
	my ($q) = @_;

	return map { "k$_" } 1 .. @{ $q->{key} };
}

sub order_by
{
	my ($q, $names) = @_;
	my $i = 0;

	return join ', ', map { $i++; ($names ? "k$i" : $_->{expr}) . $_->{order} } @{ $q->{key} };
}

sub sequence
{
	my ($q) = @_;
	my $i = 0;

	return [ map { $i++; "k$i$_->{equal}" } @{ $q->{key} } ];
}

sub where
{
	my ($q) = @_;

	return $q->{where} // '';
}

# SELECT of keys, id and some of the columns
sub select_rows
{
	my ($q, $more) = @_;

	return 'SELECT ' . join(', ', key_list($q), 'id', @{ $q->{payload} }, $more // ()) . " FROM t@{[where($q)]}";
}

sub ordered
{
	my ($q, $more) = @_;

	return select_rows($q, $more) . ' ORDER BY ' . order_by($q, 1);
}

# Only the rows' own order matters: they come as they are in the table
sub rows_as_they_are
{
	my ($q) = @_;

	$q->{sequence} = sequence($q);
	$q->{rows} = 'same';
}

# INSERT puts rows where there is room: they are numbered, and afterwards put
# in order
sub into_numbered
{
	my ($q, $query) = @_;

	$q->{finish} = [ 'CREATE TABLE %R AS SELECT * FROM %R_raw ORDER BY at;', 'ALTER TABLE %R DROP COLUMN at;', 'DROP TABLE %R_raw;' ];
	return ("CREATE TABLE %R_raw AS $query WITH NO DATA;", 'ALTER TABLE %R_raw ADD COLUMN at bigint GENERATED ALWAYS AS IDENTITY;');
}

# An INSERT of the record r
sub insert_record
{
	my ($q, @more) = @_;

	return 'INSERT INTO %R_raw VALUES (' . join(', ', map({ "r.$_" } key_names($q), 'id', @{ $q->{payload} }), @more) . ');';
}

# ---- shapes ----

sub plain
{
	my ($q) = @_;
	my $query = ordered($q);

	rows_as_they_are($q);
	if (chance(0.3))
	{
		$q->{hidden} = 1;
		$query = 'SELECT ' . join(', ', shuffle_in('id', @{ $q->{payload} })) . " FROM t@{[where($q)]} ORDER BY " . order_by($q, 0);
	}
	if (chance(0.3))
	{
		my $limit = weighted(0, 1, between(1, 20), 4, between(20, 3000), 4);

		$q->{full} = $query;
		$q->{rows} = 'subset';
		if (chance(0.15) && !grep { $_->{order} =~ /USING/ } @{ $q->{key} })
		{
			$query .= " FETCH FIRST $limit ROWS WITH TIES";
		}
		else
		{
			$query .= " LIMIT $limit" . (chance(0.4) ? ' OFFSET ' . between(0, 500) : '');
		}
		$q->{shape} = 'limit';
	}
	$q->{run} = [ "CREATE TABLE %R AS $query;" ];
	$q->{explain} = $query;
}

sub shuffle_in
{
	my ($first, @rest) = @_;

	splice @rest, between(0, scalar(@rest)), 0, $first;
	return @rest;
}

# Rows that are too large for a chunk's share
sub big_rows
{
	my ($q, $table) = @_;
	my $each = 1 + int($table->{rows} / between(3, 60));
	my $query = ordered($q, "CASE WHEN id % $each = 0 THEN repeat('y', 140000 + id) ELSE 'y' END AS big");

	rows_as_they_are($q);
	# toasted values would not be rows of that size any more
	$q->{run} = [ "CREATE TABLE %R AS SELECT " . join(', ', key_names($q), 'id', 'length(big) AS big')
		  . " FROM ($query OFFSET 0) AS q;" ];
	$q->{explain} = $query;
}

sub insert_select
{
	my ($q) = @_;

	rows_as_they_are($q);
	$q->{run} = [ into_numbered($q, ordered($q)), 'INSERT INTO %R_raw ' . ordered($q) . ';' ];
	$q->{explain} = 'INSERT INTO %R_raw ' . ordered($q);
}

sub subquery
{
	my ($q) = @_;
	my $query = 'SELECT * FROM (' . ordered($q) . ' OFFSET ' . pick(0, 0, 3) . ') AS q WHERE id % 3 <> 0';

	$q->{sequence} = sequence($q);
	$q->{rows} = $query =~ /OFFSET 0/ ? 'same' : 'none';
	# which of equal rows an offset leaves out is open: then the filter may drop others
	$query =~ s/ WHERE id % 3 <> 0$// if $q->{rows} eq 'none';
	$q->{run} = [ "CREATE TABLE %R AS $query;" ];
	$q->{explain} = $query;
}

sub cte
{
	my ($q) = @_;
	my $query = 'WITH q AS ' . pick('', 'MATERIALIZED ') . '(' . ordered($q) . ') SELECT * FROM q'
	  . pick('', ' WHERE id % 2 = 0', ' WHERE (SELECT count(*) FROM q) >= 0');

	rows_as_they_are($q);
	$q->{run} = [ "CREATE TABLE %R AS $query;" ];
	$q->{explain} = $query;
}

sub window
{
	my ($q) = @_;
	my $order = order_by($q, 1);
	my $partition = '';
	my @functions = ('rank()', 'dense_rank()', 'percent_rank()', 'cume_dist()');

	if (@{ $q->{key} } > 1 && chance(0.5))
	{
		$partition = 'PARTITION BY k1 ';
		$order =~ s/^[^,]*, //;
	}
	my @frames = ('', '', '', ' GROUPS UNBOUNDED PRECEDING', ' RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING');
	my $one_by_one = chance(0.6);

	# what counts equal rows one by one needs an order without any
	if ($one_by_one)
	{
		my $n = pick(0, 1, 2, 40, 1000, -3);

		$order .= pick(', id', ', id DESC');
		push @functions, 'row_number()', 'row_number()', 'ntile(7)', "ntile(@{[between(1, 3000)]})", 'lag(id)', 'lead(id, 3)',
		  "lag(id, $n, -id)", "lead(k1, $n)", 'lag(k1)', 'first_value(id)', 'first_value(k1)', 'last_value(k1)', 'nth_value(id, 2)',
		  'count(*) FILTER (WHERE id % 2 = 0)', 'avg(id)';
		push @frames, ' ROWS UNBOUNDED PRECEDING', ' ROWS UNBOUNDED PRECEDING', ' ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING',
		  ' ROWS 3 PRECEDING';
	}
	push @functions, 'count(*)', 'sum(id)', 'max(id)', 'min(id::text)', 'count(k1)', 'avg(id) FILTER (WHERE id % 5 > 1)' if chance(0.6);
	my $i = 0;
	my @chosen = map { "$_ OVER w AS w" . ++$i } some(between(1, 4), @functions);
	push @chosen, 'row_number() OVER (ORDER BY k1, id) AS other' if chance(0.2);
	$order = !$one_by_one && $partition && chance(0.2) ? '' : "ORDER BY $order" . pick(@frames);
	my $query = 'SELECT id, ' . join(', ', @chosen) . ' FROM (SELECT ' . join(', ', key_list($q), 'id') . " FROM t@{[where($q)]}) AS q"
	  . " WINDOW w AS ($partition$order)";

	# a condition on the first one may end the window early
	$query = 'SELECT * FROM (' . $query . ') AS v WHERE w1 <= ' . pick(3, 20, 900) if $chosen[0] !~ /k1|text/ && chance(0.3);
	push @{ $q->{settings} }, "work_mem = '64kB'" if chance(0.2);
	$q->{sequence} = [];
	$q->{rows} = 'same';
	$q->{run} = [ "CREATE TABLE %R AS $query;" ];
	$q->{explain} = $query;
}

# A query, or one around it that has no order of its own, which keeps the inner one's
sub perhaps_inner
{
	my ($query) = @_;

	return pick($query, $query, "SELECT * FROM ($query) AS o", "WITH o AS MATERIALIZED ($query) SELECT * FROM o");
}

sub distinct
{
	my ($q) = @_;
	my $keys = join(', ', key_list($q));
	my $from = " FROM t@{[where($q)]}";
	my $query = perhaps_inner(pick(
		"SELECT DISTINCT $keys$from",
		"SELECT * FROM (SELECT $keys$from) AS q GROUP BY " . join(', ', key_names($q)),
		"SELECT DISTINCT ON (k1) $keys$from") . ' ORDER BY ' . order_by($q, 1)
	  . pick('', '', ' LIMIT ' . between(1, 3000) . pick('', ' OFFSET ' . between(0, 500))));

	$q->{sequence} = sequence($q);
	$q->{rows} = 'none';
	push @{ $q->{settings} }, 'enable_hashagg = off' unless $q->{cheap};
	$q->{run} = [ "CREATE TABLE %R AS $query;" ];
	$q->{explain} = $query;
}

sub distinct_on
{
	my ($q) = @_;
	my $query = 'SELECT DISTINCT ON (k1) * FROM (' . select_rows($q) . ') AS q ORDER BY ' . order_by($q, 1) . ', id'
	  . pick('', ' DESC');

	rows_as_they_are($q);
	$q->{run} = [ "CREATE TABLE %R AS $query;" ];
	$q->{explain} = $query;
}

sub group_by
{
	my ($q) = @_;
	my $names = join ', ', key_names($q);
	my %different = map { ($_->{column} ? $_->{column}{name} : $_->{expr}) => 1 } @{ $q->{key} };
	# of one column twice PostgreSQL before 18 makes what it likes
	my $grouping = keys(%different) == @{ $q->{key} } && chance(0.3) ? pick('ROLLUP', 'CUBE', 'GROUPING SETS') . " ($names)" : $names;
	my $called = pick('avg(id::numeric)', 'sum(id::bigint)', 'max(id::text)', 'bit_or(id)', 'stddev(id)', 'bool_and(id > 9) FILTER (WHERE id % 3 = 0)');
	my $query = "SELECT $names, count(*) AS c, sum(id) AS s, min(id) AS m, $called AS x FROM (SELECT " . join(', ', key_list($q), 'id')
	  . " FROM t@{[where($q)]}) AS q GROUP BY $grouping ORDER BY " . order_by($q, 1);
	my $sequence = sequence($q);

	if ($grouping ne $names)
	{
		# the groups of a grouping set that NULL stands for, apart from those of NULL
		$query .= ", grouping($names)";
	}
	$query = perhaps_inner($query);
	$q->{sequence} = [ @$sequence, 'c', 's', 'm', 'x' ];
	$q->{rows} = 'none';
	push @{ $q->{settings} }, 'enable_hashagg = off' unless $q->{cheap};
	$q->{run} = [ "CREATE TABLE %R AS $query;" ];
	$q->{explain} = $query;
}

# Aggregates with DISTINCT and ORDER BY, which sort by themselves unless their input is in order
sub aggregate
{
	my ($q) = @_;
	my $i = 0;
	my @orders = map { $i++; "k$i$_->{order}" } @{ $q->{key} };
	my @names = key_names($q);
	my $group = pick('', 'id % 5 AS grp', 'id / 40 AS grp', 'k1 AS grp');
	my $grouped_by = $group eq '' ? undef : $group =~ /^k1/ ? "grp$q->{key}[0]{equal}" : 'grp';
	my $distinct = pick(@names);
	my @aggregates = map {
		my $filter = chance(0.1) ? ' FILTER (WHERE id % 3 <> 0)' : '';

		weighted(
			"count(DISTINCT $distinct)$filter", 4,
			"count(DISTINCT " . pick(@names) . ')', 1,
			'array_agg(id ORDER BY ' . join(', ', @orders) . ", id)$filter", 4,
			'array_agg(id % 10 ORDER BY ' . pick(@orders) . ", id DESC)$filter", 2,
			"string_agg(DISTINCT (id % 10)::text, ',')", 1,
			'sum(DISTINCT id % 7)', 1,
			'count(*)', 1,
			"sum(id)$filter", 1)
	} 1 .. between(1, 4);
	$i = 0;
	my $query = 'SELECT ' . join(', ', $group || (), map { $i++; "$_ AS a$i" } @aggregates) . ' FROM (SELECT '
	  . join(', ', key_list($q), 'id') . " FROM t@{[where($q)]}) AS q" . ($group ? ' GROUP BY grp ORDER BY grp' : '');

	$q->{sequence} = [ $grouped_by // (), map { "a$_" } 1 .. $i ];
	$q->{rows} = 'none';
	$q->{run} = [ "CREATE TABLE %R AS $query;" ];
	$q->{explain} = $query;
}

# The first rows of each group
sub top_rows
{
	my ($q) = @_;
	my $i = 0;
	my @orders = map { $i++; "k$i$_->{order}" } @{ $q->{key} };
	my @names = key_names($q);
	my $n = between(0, @names - 1);
	my $partition = $n > 0 ? 'PARTITION BY ' . join(', ', @names[ 0 .. $n - 1 ]) . ' ' : '';
	# what counts equal rows one by one needs an order without any
	my $one_by_one = chance(0.5);
	my $order = join ', ', @orders[ $n .. $#orders ], $one_by_one ? 'id' : ();
	my $function = $one_by_one ? pick('row_number()', 'row_number()', 'rank()') : 'rank()';
	my $query = 'SELECT * FROM (SELECT ' . join(', ', @names, 'id') . ", $function OVER w AS w1" . pick('', ', dense_rank() OVER w AS w2', ', sum(id) OVER w AS w2')
	  . ' FROM (SELECT ' . join(', ', key_list($q), 'id') . " FROM t@{[where($q)]}) AS q WINDOW w AS (${partition}ORDER BY $order)) AS v WHERE w1 "
	  . pick('<', '<=', '<=', '=') . ' ' . pick(1, 2, 7, 100);

	$q->{sequence} = [];
	$q->{rows} = 'same';
	$q->{run} = [ "CREATE TABLE %R AS $query;" ];
	$q->{explain} = $query;
}

# Percentiles of one column
sub percentile
{
	my ($q) = @_;
	my $key = $q->{key}[0];
	# without groups a value is a parameter that ruleutils.c cannot name, and asserts that it can
	my $group = pick('id % 5 AS grp', 'id / 40 AS grp', 'false AS grp');
	# the NULL of a CASE of names has the collation "C", and of a domain the domain's: it conflicts with another one of k1
	my @conditions = $key->{label} =~ /^(name|text\[\])$/ ? () : ('id % 3 <> 0', 'id > 100', 'false');
	my $value = pick('k1', 'k1', map { "CASE WHEN $_ THEN k1 END" } @conditions);
	my @functions = map {
		'percentile_disc(' . pick(0, 0.1, 0.5, 0.77, 1) . ") WITHIN GROUP (ORDER BY $value$key->{order})"
		  . (chance(0.05) ? ' FILTER (WHERE id % 3 <> 0)' : '')
	} 1 .. between(1, 4);
	my $i = 0;
	my $query = 'SELECT ' . join(', ', $group, map { $i++; "$_ AS a$i" } @functions) . ' FROM (SELECT '
	  . join(', ', key_list($q), 'id') . " FROM t@{[where($q)]}) AS q GROUP BY grp ORDER BY grp";

	$q->{sequence} = [ 'grp', map { "a$_$key->{equal}" } 1 .. $i ];
	$q->{rows} = 'none';
	$q->{run} = [ "CREATE TABLE %R AS $query;" ];
	$q->{explain} = $query;
}

# The inner side has few rows, for equal values make the product of both; they
# are chosen so that mark and restore has work
sub merge_join
{
	my ($q, $table) = @_;
	my $list = join ', ', key_list($q);
	my $i = 0;
	my $on = join ' AND ', map { $i++; my $cast = $_->{type}{compare_as} // ''; "a.k$i$cast = b.k$i$cast" } @{ $q->{key} };
	my $few = 'id % ' . (1 + int($table->{rows} / between(5, 40))) . ' = 0';
	my $a = "(SELECT $list, id FROM t@{[where($q)]} OFFSET 0) AS a";
	my $b = "(SELECT $list, id FROM t WHERE $few OFFSET 0) AS b";
	my $query = weighted(
		"SELECT a.id AS a, b.id AS b FROM $a @{[pick('', 'LEFT ', 'RIGHT ', 'FULL ')]}JOIN $b ON $on", 4,
		"SELECT a.id AS a FROM $a WHERE @{[pick('', 'NOT ')]}EXISTS (SELECT FROM $b WHERE $on)", 1,
		"SELECT a.id AS a, b.id AS b FROM $b JOIN $a ON $on", 2);

	$q->{sequence} = [];
	$q->{rows} = 'same';
	push @{ $q->{settings} }, 'enable_hashjoin = off', 'enable_nestloop = off';
	push @{ $q->{settings} }, 'enable_material = off' if chance(0.6);
	$q->{run} = [ "CREATE TABLE %R AS $query;" ];
	$q->{explain} = $query;
}

sub set_operation
{
	my ($q) = @_;
	my $list = join ', ', key_list($q);
	my $query = "SELECT $list FROM t WHERE id % 2 = 0 " . pick('UNION', 'INTERSECT', 'INTERSECT ALL', 'EXCEPT', 'EXCEPT ALL')
	  . " SELECT $list FROM t WHERE id % 3 = 0 ORDER BY " . order_by($q, 1);

	$q->{sequence} = sequence($q);
	$q->{rows} = 'none';
	push @{ $q->{settings} }, 'enable_hashagg = off';
	$q->{run} = [ "CREATE TABLE %R AS $query;" ];
	$q->{explain} = $query;
}

# Sorted children of an ordered append: one has an index, the others must be sorted
sub merge_append
{
	my ($q, $table) = @_;
	my @plain = grep { $_->{column} && !$_->{column}{long} && $_->{label} !~ /^array|\[\]/ } @{ $q->{key} };

	return plain($q) unless $table->{partitions} && @plain == @{ $q->{key} };
	# under a window function, for which gpusort has no path that would be cheaper
	my $query = 'SELECT *, rank() OVER (ORDER BY ' . order_by($q, 1) . ') AS r FROM (' . select_rows($q) . ') AS q';

	$q->{setup} = [ 'CREATE INDEX one_index ON t1 (' . join(', ', map { ($_->{expr} =~ s/^\(|\)$//gr) . $_->{order} } @{ $q->{key} }) . ');' ];
	$q->{cleanup} = [ 'DROP INDEX one_index;' ];
	push @{ $q->{settings} }, 'enable_incremental_sort = off', 'cpu_operator_cost = 1';
	$q->{sequence} = [];
	$q->{rows} = 'same';
	$q->{run} = [ "CREATE TABLE %R AS $query;" ];
	$q->{explain} = $query;
}

# A loop that goes on by one row up to n times
sub steps
{
	my ($direction, $n, $keep) = @_;
	my ($step, $end) = $direction eq 'FORWARD' ? ('+ 1', 'total + 1') : ('- 1', '0');

	return "\tFOR i IN 1 .. $n LOOP\n\t\tFETCH $direction FROM c INTO r;\n\t\tgot := FOUND;\n\t\tEXIT WHEN NOT got;\n"
	  . "\t\tplace := place $step;\n\t\t$keep\n\tEND LOOP;\n\tIF NOT got THEN place := $end; END IF;\n";
}

# A walk over a cursor.  Each row is noted with the place where the cursor must
# be then.
sub cursor
{
	my ($q) = @_;
	my $query = ordered($q, '0::bigint AS place');
	my $hold = chance(0.3);
	my @moves;

	for (1 .. between(3, 9))
	{
		my $n = between(1, 3000);

		push @moves, weighted(
			"FETCH NEXT FROM c INTO r; place := least(place + 1, total + 1);", 2,
			"FETCH PRIOR FROM c INTO r; place := greatest(place - 1, 0);", 2,
			"FETCH LAST FROM c INTO r; place := total;", 1,
			"FETCH FIRST FROM c INTO r; place := least(1, total + 1);", 1,
			"FETCH ABSOLUTE $n FROM c INTO r; place := least($n, total + 1);", 2,
			"FETCH ABSOLUTE -$n FROM c INTO r; place := greatest(total + 1 - $n, 0);", 2,
			"FETCH RELATIVE $n FROM c INTO r; place := least(place + $n, total + 1);", 1,
			"FETCH RELATIVE -$n FROM c INTO r; place := greatest(place - $n, 0);", 1,
			"MOVE $n FROM c; place := least(place + $n, total + 1);", 1,
			"step FORWARD $n", 3,
			"step BACKWARD $n", 2,
			'step FORWARD 30000', 1,
			'step BACKWARD 30000', 1);
	}
	my $keep = insert_record($q, 'place');
	my $body = join '', map {
			/^step (\w+) (\d+)/ ? steps($1, $2, $keep)
		  : /^MOVE/ ? "\t$_\n"
		  : "\t$_\n\tIF r.id IS NOT NULL THEN $keep END IF;\n"
	} @moves;

	$q->{sequence} = [ 'place', @{ sequence($q) } ];
	$q->{rows} = 'none';
	# a place always has the same row
	$q->{check} = '(SELECT count(DISTINCT place) = count(DISTINCT (place, id)) FROM %R)';
	$q->{run} = [
		into_numbered($q, $query),
		'BEGIN;',
		'DECLARE walk SCROLL CURSOR' . ($hold ? ' WITH HOLD' : '') . " FOR $query;",
		$hold ? 'COMMIT;' : (),
		'DO $walk$ DECLARE c refcursor := \'walk\'; r record; place bigint := 0; got bool;'
		  . " total bigint := (SELECT count(*) FROM t@{[where($q)]});\nBEGIN\n$body" . 'END $walk$;',
		'CLOSE walk;',
		$hold ? () : 'COMMIT;' ];
	$q->{explain} = $query;
}

sub loop
{
	my ($q) = @_;
	my $query = ordered($q);

	rows_as_they_are($q);
	if (chance(0.4))
	{
		$query .= ' FOR ' . pick('UPDATE', 'NO KEY UPDATE', 'SHARE');
		$q->{shape} = 'for_update';
	}
	$q->{run} = [
		into_numbered($q, ordered($q)),
		"DO \$loop\$ DECLARE r record; BEGIN\n\tFOR r IN $query LOOP\n\t\t@{[insert_record($q)]}\n\tEND LOOP;\nEND \$loop\$;" ];
	$q->{explain} = $query;
}

sub prepared
{
	my ($q) = @_;
	my @values = map { between(1, 4) } 1 .. 3;
	my $query = 'SELECT ' . join(', ', key_list($q), 'id') . ' FROM t WHERE id % $1 = 0 ORDER BY ' . order_by($q, 1);

	$q->{sequence} = sequence($q);
	$q->{rows} = 'same';
	if (chance(0.3))
	{
		$query .= ' LIMIT $1 * 50';
		$q->{rows} = 'none';
	}
	push @{ $q->{settings} }, 'plan_cache_mode = ' . pick('force_generic_plan', 'force_generic_plan', 'auto');
	$q->{run} = [
		"PREPARE again (int) AS $query;",
		map({ my $n = $_; "CREATE TABLE %R_$n AS EXECUTE again ($values[$n]);" } 0 .. 2),
		'DEALLOCATE again;' ];
	$q->{finish} = [
		'CREATE TABLE %R AS ' . join(' UNION ALL ', map { "SELECT $_ AS which, * FROM %R_$_" } 0 .. 2) . ';',
		map({ "DROP TABLE %R_$_;" } 0 .. 2) ];
	unshift @{ $q->{sequence} }, 'which';
	$q->{explain} = $query =~ s/\$1/$values[0]/gr;
}

sub lateral
{
	my ($q) = @_;
	my $inner = 'SELECT ' . join(', ', key_list($q), 'id') . ' FROM t';
	my $condition = pick('id % o.x = 0', 'id % 7 < o.x', 'id % 3 = 0', 'id % 2 = 0 AND o.y > 0');
	my $query = "SELECT o.x, q.* FROM (SELECT x, x % 2 AS y FROM generate_series(1, @{[between(1, 5)]}) AS x OFFSET 0) AS o"
	  . " LEFT JOIN LATERAL ($inner WHERE $condition ORDER BY " . order_by($q, 1) . ' OFFSET 0) AS q ON true';

	$q->{sequence} = [ 'x', @{ sequence($q) } ];
	$q->{rows} = 'same';
	push @{ $q->{settings} }, 'enable_material = off', 'enable_hashjoin = off', 'enable_mergejoin = off';
	$q->{run} = [ "CREATE TABLE %R AS $query;" ];
	$q->{explain} = $query;
}

# In expressions: an init plan, a subplan with parameters, an ordered aggregate
sub expression
{
	my ($q) = @_;
	my $ids = 'SELECT id FROM t WHERE id % 4 %C ORDER BY ' . order_by($q, 0) . ', id';
	my $query = pick(
		'SELECT ARRAY(' . ($ids =~ s/%C/<> 1/r) . ') AS ids',
		'SELECT o.x, ARRAY(' . ($ids =~ s/%C/= o.x/r) . ') AS ids FROM generate_series(0, 3) AS o(x)',
		'SELECT id % 3 AS x, array_agg(id ORDER BY ' . order_by($q, 0) . ", id) AS ids FROM t@{[where($q)]} GROUP BY 1");

	$q->{sequence} = [];
	$q->{rows} = 'same';
	$q->{run} = [ "CREATE TABLE %R AS $query;" ];
	$q->{explain} = $query;
}

# Two sorts under one Append
sub append
{
	my ($q) = @_;
	my $part = sub {
		'(SELECT ' . $_[0] . ' AS part, ' . join(', ', key_list($q), 'id') . " FROM t WHERE id % 2 = $_[0] ORDER BY " . order_by($q, 1)
		  . ' OFFSET 0)';
	};
	my $query = $part->(0) . ' UNION ALL ' . $part->(1);

	$q->{sequence} = [ 'part', @{ sequence($q) } ];
	$q->{rows} = 'same';
	push @{ $q->{settings} }, 'enable_parallel_append = off', 'max_parallel_workers_per_gather = 0';
	$q->{run} = [ "CREATE TABLE %R AS $query;" ];
	$q->{explain} = $query;
}

my @shapes = (
	plain => \&plain, 10, big_rows => \&big_rows, 1, insert_select => \&insert_select, 2, subquery => \&subquery, 2, cte => \&cte, 2,
	window => \&window, 4, distinct => \&distinct, 2, distinct_on => \&distinct_on, 2, group_by => \&group_by, 3,
	aggregate => \&aggregate, 4, percentile => \&percentile, 2, top_rows => \&top_rows, 3,
	merge_join => \&merge_join, 4, set_operation => \&set_operation, 3, merge_append => \&merge_append, 2, cursor => \&cursor, 3,
	loop => \&loop, 3, prepared => \&prepared, 2, lateral => \&lateral, 2, expression => \&expression, 1, append => \&append, 1);

# Shapes with ~<~ in their ORDER BY: elsewhere other operators take part
my %with_using = map { $_ => 1 } qw(plain big_rows insert_select subquery cte window loop cursor lateral expression append prepared);

sub random_query
{
	my ($table) = @_;
	my ($shape, $function);

	{
		my @pairs;

		push @pairs, [ @shapes[ 3 * $_, 3 * $_ + 1 ] ], $shapes[ 3 * $_ + 2 ] for 0 .. @shapes / 3 - 1;
		($shape, $function) = @{ weighted(@pairs) };
		($shape, $function) = ('merge_append', \&merge_append) if $table->{partitions} && chance(0.25);
	}
	my $most = $shape eq 'percentile' ? 1 : $shape eq 'group_by' ? 3 : $shape eq 'merge_append' ? 2 : 4;
	my $q = { shape => $shape, key => [ random_keys($table, $most, $with_using{$shape}) ] };

	push @{ $q->{settings} },
	  'work_mem = ' . pick("'64kB'", "'256kB'", "'4MB'", "'64MB'"),
	  'max_parallel_workers_per_gather = ' . ($shape eq 'for_update' ? 0 : weighted(0, 3, 1, 1, 2, 2, 4, 1));
	push @{ $q->{settings} }, 'parallel_setup_cost = 0', 'parallel_tuple_cost = 0', 'min_parallel_table_scan_size = 0'
	  if chance(0.7);
	push @{ $q->{settings} }, 'enable_incremental_sort = off' if chance(0.3);
	push @{ $q->{settings} }, 'enable_partitionwise_join = on', 'enable_partitionwise_aggregate = on' if $table->{partitions} && chance(0.5);
	$q->{min_rows} = weighted(0, 5, between(1, 50), 2, between(50, 2000), 2, 20000, 1);
	$q->{where} = ' WHERE ' . pick('id % 2 = 1', 'id > 10', 'id % 3 <> 0', 'false', 'id < 200') if chance(0.15);
	my @names = map { $_->{name} } @{ $table->{columns} };
	$q->{payload} = [ some(weighted(0, 3, 1, 3, 3, 2, 12, 2), @names) ];
	$q->{cheap} = 1 if chance(0.25);
	# by cost, it is the planner that leaves small sorts alone
	$q->{min_rows} = 0 if $q->{cheap};
	$function->($q, $table);

	$q->{labels} = [ map { $_->{label} } @{ $q->{key} } ];
	$q->{left} = grep { $_->{type}{left} } @{ $q->{key} };
	return $q;
}

1;
