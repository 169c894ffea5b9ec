# Tables of the differential tester: columns of random types and widths, filled
# from hashes of the row's number, with columns dropped and added, and
# partitions that have them in another order.

package FuzzTable;

use strict;
use warnings;

use FuzzRandom;
use FuzzTypes;

use base 'Exporter';
our @EXPORT = qw(random_table);

# An endless supply of hashes of the row's number
sub hashes
{
	my ($table) = @_;

	return sub { 'hashint8extended(s.i, ' . ++$table->{salt} . ')' };
}

sub sql_value
{
	my ($value, $type) = @_;

	return (ref $value ? "($$value)" : quote($value) . ($type->{cast} // '')) . "::$type->{sql}";
}

sub random_column
{
	my ($name, $type, $long_chance) = @_;
	my $column = { name => $name, type => $type, label => $type->{label} };

	$column->{definition} = "$name $type->{sql}";
	if ($type->{collates} && $type->{label} ne 'domain')
	{
		# longer than a key only those are sorted that are their own keys
		$column->{definition} .= ' COLLATE ' . ($long_chance == 1 ? pick('"C"', '"C"', 'fuzz_icu', 'fuzz_en') : random_collation())
		  if chance(0.5) || $long_chance == 1;
	}
	$column->{nulls} = weighted(0, 4, 0.05, 4, 0.5, 1, 1, 0.2);
	if ($type->{formula} && $long_chance < 1 && chance(0.35))
	{
		$column->{formula} = $type->{formula};
		return $column;
	}

	my $size = weighted(1, 1, between(2, 4), 3, between(5, 25), 4, between(50, 300), 3);
	my @values = map { chance(0.5) ? pick(@{ $type->{nasty} }) : $type->{random}->() } 1 .. $size;
	if ($type->{long} && chance($long_chance))
	{
		push @values, @{ $type->{long} };
		$column->{long} = 1;
	}
	$column->{pool} = \@values;
	return $column;
}

# How a row gets its value of a column: from s.i alone, or from a table of values
sub column_expr
{
	my ($table, $column) = @_;
	my $hash = hashes($table);
	my $value = $column->{formula} ? $column->{formula}->($hash) : "pool_$column->{name}.v";

	return $value if $column->{nulls} == 0;
	return "CASE WHEN (@{[$hash->()]} & 1023) >= " . int($column->{nulls} * 1024) . " THEN $value END";
}

sub pool_join
{
	my ($table, $column) = @_;
	my $hash = hashes($table);
	my $n = @{ $column->{pool} };
	my $which = "(@{[$hash->()]} & 4294967295) % $n";

	# most rows from the first values
	$which = "least($which, (@{[$hash->()]} & 4294967295) % $n)" if chance(0.3);
	return "LEFT JOIN pool_$column->{name} ON pool_$column->{name}.i = $which";
}

sub shuffled
{
	return some(scalar(@_), @_);
}

sub create_statements
{
	my ($table) = @_;
	my @columns = @{ $table->{columns} };
	my @definitions = ('id int', map { $_->{definition} } grep { !$_->{added} } @columns);
	my @sql;

	splice @definitions, between(0, scalar(@definitions)), 0, "gone$_ " . pick('int', 'text', 'float8', 'bool')
	  for 1 .. $table->{dropped};
	if ($table->{partitions})
	{
		push @sql, 'CREATE TABLE t (' . join(', ', @definitions) . ') PARTITION BY HASH (id);';
		push @sql, "ALTER TABLE t DROP COLUMN gone$_;" for 1 .. $table->{dropped};
		for my $p (1 .. $table->{partitions})
		{
			my @own = shuffled(grep { !/^gone/ } @definitions);

			splice @own, between(0, scalar(@own)), 0, 'gone int' if chance(0.5);
			push @sql, "CREATE TABLE t$p (" . join(', ', @own) . ');';
			push @sql, "ALTER TABLE t$p DROP COLUMN gone;" if grep { $_ eq 'gone int' } @own;
			push @sql, "ALTER TABLE t ATTACH PARTITION t$p FOR VALUES WITH (MODULUS $table->{partitions}, REMAINDER @{[$p - 1]});";
		}
	}
	else
	{
		push @sql, 'CREATE UNLOGGED TABLE t (' . join(', ', @definitions) . ');';
		push @sql, "ALTER TABLE t DROP COLUMN gone$_;" for 1 .. int($table->{dropped} / 2);
	}
	for my $column (@columns)
	{
		push @sql, "ALTER TABLE t ALTER $column->{name} SET STORAGE external;" if $column->{long} && !$column->{added} && chance(0.5);
	}
	return @sql;
}

sub fill_statements
{
	my ($table) = @_;
	my @columns = grep { !$_->{added} } @{ $table->{columns} };
	my @pooled = grep { $_->{pool} } @{ $table->{columns} };
	my @sql;

	for my $column (@pooled)
	{
		my $i = 0;

		push @sql, "CREATE UNLOGGED TABLE pool_$column->{name} (i int, v $column->{type}{sql});",
		  "INSERT INTO pool_$column->{name} VALUES\n\t"
		  . join(",\n\t", map { '(' . $i++ . ', ' . sql_value($_, $column->{type}) . ')' } @{ $column->{pool} }) . ';';
	}
	push @sql, 'INSERT INTO t (' . join(', ', 'id', map { $_->{name} } @columns) . ")\n"
	  . 'SELECT s.i' . join('', map { ",\n\t" . column_expr($table, $_) . " AS $_->{name}" } @columns)
	  . "\nFROM generate_series(1, $table->{rows}) AS s(i)"
	  . join('', map { "\n\t" . pool_join($table, $_) } grep { !$_->{added} } @pooled)
	  . "\nORDER BY $table->{order};";
	for my $column (grep { $_->{added} } @{ $table->{columns} })
	{
		my $default = $column->{pool} ? ' DEFAULT ' . sql_value($column->{pool}[0], $column->{type}) : '';

		push @sql, "ALTER TABLE t ADD COLUMN $column->{definition}$default;";
		push @sql, "UPDATE t SET $column->{name} = x.v FROM (SELECT s.i AS id, @{[column_expr($table, $column)]} AS v "
		  . "FROM generate_series(1, $table->{rows}) AS s(i)"
		  . ($column->{pool} ? ' ' . pool_join($table, $column) : '') . ') AS x WHERE x.id = t.id AND t.id % 2 = 0;';
	}
	unless ($table->{partitions})
	{
		push @sql, "ALTER TABLE t DROP COLUMN gone$_;" for int($table->{dropped} / 2) + 1 .. $table->{dropped};
	}
	push @sql, 'ANALYZE t;';
	return @sql;
}

# A table with the statements that make it
sub random_table
{
	my $table = { salt => between(1, 1_000_000) };
	my $n_columns = weighted(between(1, 3), 4, between(3, 7), 4, between(8, 12), 2);

	$table->{rows} = weighted(between(0, 1), 2, between(2, 50), 8, between(50, 700), 16, between(700, 4000), 26, between(4000, 20000), 13);
	my $long_chance = $table->{rows} <= 700 ? 0.3 : 0;
	my $long_table = $long_chance > 0 && chance(0.2);
	for my $i (1 .. $n_columns)
	{
		my $long = $i == 1 && $long_table;
		my $type = $long ? long_type() : $i > 1 && chance(0.2) ? payload_type() : random_type();

		push @{ $table->{columns} }, random_column("c$i", $type, $long ? 1 : $long_chance);
	}
	$table->{columns}[-1]{added} = 1 if $n_columns > 1 && chance(0.2);
	$table->{dropped} = chance(0.3) ? between(1, 3) : 0;
	$table->{partitions} = between(2, 4) if chance(0.2);

	my @sortable = grep { !$_->{added} } @{ $table->{columns} };
	$table->{order} = weighted('s.i', 6, 's.i DESC', 1, @sortable ? (pick(@sortable)->{name} . pick('', ' DESC') . ', s.i', 2) : ());
	$table->{sql} = [ create_statements($table), fill_statements($table) ];
	return $table;
}

1;
