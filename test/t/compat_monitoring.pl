# packaging/monitoring: each query returns what its list of metrics says, and
# each query of the dashboard asks for metrics that there are.  Where
# postgres_exporter and Prometheus are installed, they run all of them.

use strict;
use warnings;

use HTTP::Tiny;
use JSON::PP;
use List::Util qw(any uniq);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use GpusortPackaging;
use GpusortTest;

my ($queries) = yaml('packaging/monitoring/queries.yaml');
my $node = new_server('monitoring', "max_parallel_workers_per_gather = 0\n", rows => 30000);

plan skip_all => 'PostgreSQL was built without libxml' if $node->psql('postgres', q(SELECT table_to_xml('pg_am', false, false, ''))) != 0;

# A sort of each kind, one that falls back, one that is refused, and one that is open
$node->safe_psql('postgres', q(
	SET gpusort.force = on;
	SELECT count(*) FROM (SELECT k FROM t WHERE id < 100 ORDER BY k OFFSET 0) AS s;
	SELECT count(*) FROM (SELECT k FROM t ORDER BY to_tsvector('simple', k::text) OFFSET 0) AS s;
	CREATE INDEX t_k ON t (k);
	CLUSTER t USING t_k;
	CREATE ROLE watcher LOGIN;
	GRANT pg_monitor TO watcher;));
fault($node, 'device_memory');
same_rows($node, '', 'SELECT id FROM t ORDER BY k;', 'falls back: rows');
fault_over($node, 'falls back');
my ($session) = cursor($node, 'SELECT id FROM t ORDER BY k', 1);

#
# The queries
#
my $number = qr/^(?:integer|bigint|numeric|double precision)$/;
my %types = (
	LABEL => qr/^(?:text|integer)$/,
	GAUGE => $number,
	COUNTER => $number,
	HISTOGRAM => qr/^double precision\[\]$/);
my %metrics;					# names, with their labels

for my $name (sort keys %$queries)
{
	my %columns = map { %$_ } @{ $queries->{$name}{metrics} };
	my @labels = grep { $columns{$_}{usage} eq 'LABEL' } keys %columns;
	my %expected = map { $_ => $types{ $columns{$_}{usage} } } keys %columns;

	for my $column (keys %columns)
	{
		my $usage = $columns{$column}{usage};

		if ($usage eq 'HISTOGRAM')
		{
			$expected{"${column}_bucket"} = qr/^bigint\[\]$/;
			$expected{"${column}_count"} = $number;
			$expected{"${column}_sum"} = $number;
			$metrics{"${name}_${column}_bucket"} = [ @labels, 'le' ];
			$metrics{"${name}_${column}_$_"} = \@labels for 'count', 'sum';
		}
		elsif ($usage ne 'LABEL')
		{
			$metrics{"${name}_$column"} = \@labels;
		}
	}

	# as the exporters run it
	my $out = $node->safe_psql('postgres', "BEGIN READ ONLY; $queries->{$name}{query} \\gdesc\n$queries->{$name}{query};",
		extra_params => [ '-U', 'watcher' ]);
	my @rows = split /\n/, $out;
	my %got = map { split /\|/ } splice @rows, 0, keys %expected;

	like($got{$_} // 'missing', $expected{$_}, "$name: $_") for sort keys %expected;
	cmp_ok(@rows, '>', 0, "$name: rows");
}

# a histogram is cumulative, and ends with all sorts that have a bound
is( $node->safe_psql('postgres', "SELECT bool_and(seconds_count > 0 AND seconds_sum > 0 AND seconds_bucket[23] = seconds_count
		AND seconds_bucket = ARRAY(SELECT unnest(seconds_bucket) ORDER BY 1) AND array_length(seconds, 1) = 23
		AND seconds_sum <= (SELECT sum(b * s) FROM unnest(seconds,
			ARRAY(SELECT n - lag(n, 1, 0::bigint) OVER (ORDER BY n) FROM unnest(seconds_bucket) AS n)) AS u (b, s))),
		string_agg(DISTINCT kind, ', ' ORDER BY kind)
	FROM ($queries->{gpusort_stat_times}{query}) AS q"),
	't|device sort, index build, process sort, table sort', 'histograms');

#
# The dashboard
#
my $dashboard = decode_json(slurp_file("$ENV{TESTDIR}/packaging/monitoring/dashboard.json"));
my @expressions;

for my $panel (@{ $dashboard->{panels} })
{
	for my $target (@{ $panel->{targets} })
	{
		my $expression = $target->{expr};
		my $what = "$panel->{title}, $target->{refId}";
		my @names = $expression =~ /\$\{metrics\}(\w+)/g;
		my @labels = ($expression =~ /(\w+)=/g, map { split /, / } "$expression $target->{legendFormat}" =~ /(?:by \(([^)]*)\)|\{\{(\w+)\}\})/g);

		cmp_ok(@names, '>', 0, "$what: metrics");
		for my $metric (map { "gpusort$_" } @names)
		{
			ok($metrics{$metric}, "$what: $metric");
			for my $label (grep { defined && $_ ne 'instance' } @labels)
			{
				ok((any { $_ eq $label } @{ $metrics{$metric} }), "$what: $metric has $label");
			}
		}
		push @expressions, [ $what, $expression ];
	}
}
# alerts that the documentation proposes
my ($alerts) = slurp_file("$ENV{TESTDIR}/docs/monitoring.md") =~ /^\| alert \| expression \|\n\| --- \| --- \|\n(.*?)\n\n/ms;

for (split /\n/, $alerts)
{
	my ($alert, $expression) = /^\| (.*?) \| (.*) \|$/;

	for my $metric ($expression =~ /(gpusort\w+)/g)
	{
		ok($metrics{$metric}, "$alert: $metric");
	}
	# whether it holds is another question
	push @expressions, [ $alert, $expression =~ s/ (==|>) / $1 bool /r ];
}

my @places = map { my $p = $_->{gridPos}; map { my $x = $_; map { "$x $_" } $p->{y} .. $p->{y} + $p->{h} - 1 } $p->{x} .. $p->{x} + $p->{w} - 1 }
  @{ $dashboard->{panels} };

is(scalar(uniq @places), scalar(@places), 'panels do not overlap');

#
# With the programs
#
my @programs = ('prometheus-postgres-exporter', 'prometheus');

sub answer
{
	my ($url) = @_;
	my $response = HTTP::Tiny->new(timeout => 20)->get($url);

	return $response->{success} ? $response->{content} : '';
}

sub expressions_run
{
	my ($exporter, $prometheus) = map { '127.0.0.1:' . PostgreSQL::Test::Cluster::get_free_port() } 1, 2;
	my $dir = PostgreSQL::Test::Utils::tempdir();
	my ($host, $port) = ($node->host, $node->port);

	append_to_file("$dir/prometheus.yml", "{global: {scrape_interval: 1s}, scrape_configs: [{job_name: gpusort, static_configs: [{targets: ['$exporter']}]}]}\n");
	local $ENV{DATA_SOURCE_NAME} = "user=watcher host=$host port=$port dbname=postgres sslmode=disable";
	my @runs = (
		IPC::Run::start([ $programs[0], "--web.listen-address=$exporter", '--disable-default-metrics', '--disable-settings-metrics',
				"--extend.query-path=$ENV{TESTDIR}/packaging/monitoring/queries.yaml" ], '>', "$dir/exporter.log", '2>&1'),
		IPC::Run::start([ $programs[1], "--config.file=$dir/prometheus.yml", "--storage.tsdb.path=$dir/data", "--web.listen-address=$prometheus" ],
			'>', "$dir/prometheus.log", '2>&1'));

	my $text = '';
	ok(eventually(sub { ($text = answer("http://$exporter/metrics")) =~ /^gpusort_stats_rows\b/m }, 30), 'the exporter answers');
	for my $metric (sort keys %metrics)
	{
		like($text, qr/^$metric(?:\{.*\})? [\d.e+]+$/m, "the exporter has $metric");
	}

	my $ask = sub {
		my ($expression) = @_;
		my %values = (metrics => 'gpusort', instance => '.*', __rate_interval => '20s');
		my $query = HTTP::Tiny->new->www_form_urlencode({ query => $expression =~ s/\$\{?(\w+)\}?/$values{$1}/gr });

		return decode_json(answer("http://$prometheus/api/v1/query?$query") || '{"status": "no answer"}');
	};
	# a rate takes two values, and one of a counter that grows from nothing one more
	ok(eventually(sub {
		$node->safe_psql('postgres', q(SET gpusort.force = on; EXPLAIN SELECT k FROM t ORDER BY to_tsvector('simple', k::text)));
		my $rates = $ask->('rate(gpusort_stat_reasons_count{kind="refusal"}[20s]) > 0');
		($rates->{status} // '') eq 'success' && @{ $rates->{data}{result} };
	}, 60), 'Prometheus has values');
	for (@expressions)
	{
		my ($what, $expression) = @$_;
		my $answer = $ask->($expression);

		is($answer->{status}, 'success', "$what: $expression");
		# only reasons with new cases are shown
		cmp_ok(@{ $answer->{data}{result} // [] }, '>', 0, "$what: values") unless $expression =~ /kind="fallback"/;
	}
	$_->signal('TERM') for @runs;
	eval { $_->finish } for @runs;
}

SKIP:
{
	skip("there is no @programs", 1) if any { system("command -v $_ >/dev/null") != 0 } @programs;
	expressions_run();
}
$session->quit;
becomes($node, "string_agg(phase || ' ' || sorts, ', ') = 'sorting 0' FROM ($queries->{gpusort_activity}{query}) AS q", 'a sample also while nothing sorts');
$node->stop;
done_testing();
