# The tables of libc locales: a session makes each, and all others have it, however many there are.  Sessions that wait for
# one can be cancelled, do not keep others from other locales, and make it themselves if its maker ends.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use GpusortTest;

# The last four are made in the second part
my @locales = ((map { "$_.utf8" } qw(en_US de_DE cs_CZ da_DK hu_HU ru_RU tr_TR zh_CN)),
	(map { "$_.UTF-8" } qw(en_US de_DE cs_CZ da_DK hu_HU ru_RU)));
my $node = new_server('order_tables', '', init => [ '--encoding=UTF8', '--locale=C' ], rows => 100);
my $makes = qr/gpusort makes the table of libc locale/;

value($node, qq{CREATE COLLATION "my_$_" (PROVIDER = libc, LOCALE = '$_')}) for @locales;

sub plan_under
{
	return qq{EXPLAIN (COSTS OFF) SELECT k FROM t ORDER BY k COLLATE "my_$_[0]";};
}

# The plans of a new session, and how many tables it makes
sub new_session
{
	my ($messages) = messages_of($node, "$force SET client_min_messages = debug1; " . join ' ', map { plan_under($_) } @_);

	return scalar(() = $messages =~ /$makes/g);
}

my @others = splice @locales, -4;
is(new_session(@locales), scalar(@locales), 'a session makes a table for each locale');
is(new_session(@locales), 0, 'the next session makes none');

# Another one waits for a table
my $waits = 'SELECT count(*) FROM pg_stat_activity WHERE wait_event ' .
  ($node->pg_version >= 17 ? "= 'GpusortTable'" : "= 'Extension' AND state = 'active'") . ' AND pid = ';

for my $way ('cancel', 'terminate')
{
	my $locale = shift @others;
	my $maker = session($node, "$force SET gpusort.fault = 'libc_table';");
	my $waiter = session($node, "$force SET client_min_messages = debug1;");

	$maker->send(plan_under($locale));
	becomes($node, "state = 'active' FROM pg_stat_activity WHERE pid = $maker->{pid}", "$way: a session makes a table");

	is(messages_of($node, "$force SET statement_timeout = '5s'; " . plan_under($others[-1 - ($way eq 'cancel')])), '',
		"$way: other locales have theirs");
	$waiter->send(plan_under($locale));
	ok(eventually(sub { value($node, $waits . $waiter->{pid}) }), "$way: another one waits");
	value($node, "SELECT pg_cancel_backend($waiter->{pid})");
	$waiter->receive;
	like($waiter->errors, qr/canceling statement due to user request/, "$way: and can be cancelled");

	$waiter->send(plan_under($locale));
	ok(eventually(sub { value($node, $waits . $waiter->{pid}) }), "$way: it waits again");
	value($node, "SELECT pg_${way}_backend($maker->{pid})");
	like($waiter->receive, qr/GpuSort/, "$way: it has a plan when the first one has ended");
	like($waiter->errors, $makes, "$way: and made the table");
	is(new_session($locale), 0, "$way: which others have");
	$_->quit for $maker, $waiter;
}

$node->stop;
done_testing();
