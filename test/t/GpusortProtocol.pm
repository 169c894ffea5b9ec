# A client that speaks PostgreSQL's protocol itself, as libpq has no way to do
# what drivers such as JDBC's do: read a portal in parts, several of them in
# turn, and send messages without waiting for the answers.

package GpusortProtocol;

use strict;
use warnings;

use IO::Select;
use IO::Socket::UNIX;

# Connect over the server's Unix socket, which trusts us.  Further parameters
# go into the startup message: replication => 'database', say.
sub connect_to
{
	my ($class, $node, %parameters) = @_;
	my $self = bless { buffer => '', out => '' }, $class;

	$self->{socket} = IO::Socket::UNIX->new(Peer => $node->host . '/.s.PGSQL.' . $node->port)
	  or die "cannot connect to the server: $!";
	%parameters = (user => scalar getpwuid($<), database => 'postgres', %parameters);
	my $startup = pack('N', 3 << 16) . join('', map { "$_\0$parameters{$_}\0" } sort keys %parameters) . "\0";
	$self->{out} = pack('N', 4 + length $startup) . $startup;
	$self->{pid} = 0;
	for my $message ($self->receive('Z'))
	{
		$self->{pid} = unpack('N', $message->[1]) if $message->[0] eq 'K';
		die 'no connection: ' . error_text($message->[1]) if $message->[0] eq 'E';
	}
	return $self;
}

sub put
{
	my ($self, $type, $body) = @_;

	$self->{out} .= $type . pack('N', 4 + length $body) . $body;
	return $self;
}

# The messages of the extended protocol.  They leave with the next receive()
# or send(), so that several of them are a pipeline.
sub parse { my ($self, $name, $sql) = @_; return $self->put('P', "$name\0$sql\0" . pack('n', 0)); }

sub bind
{
	my ($self, $portal, $statement, @values) = @_;

	return $self->put('B', "$portal\0$statement\0" . pack('n n', 0, scalar @values)
		  . join('', map { pack('N/a*', $_) } @values) . pack('n', 0));
}

sub execute { my ($self, $portal, $rows) = @_; return $self->put('E', "$portal\0" . pack('N', $rows // 0)); }
sub close_portal { my ($self, $portal) = @_; return $self->put('C', "P$portal\0"); }
sub sync { my ($self) = @_; return $self->put('S', ''); }

# Send what has been put together; what a server that has gone has to say is
# still to be read
sub send
{
	my ($self) = @_;

	local $SIG{PIPE} = 'IGNORE';
	while (length $self->{out})
	{
		my $n = syswrite $self->{socket}, $self->{out};
		$n = length $self->{out} unless $n;
		substr($self->{out}, 0, $n, '');
	}
	return $self;
}

# Messages up to one of the given types, or the connection's end
sub receive
{
	my ($self, $last) = @_;
	my @messages;

	$self->send;
	for (;;)
	{
		while (length $self->{buffer} >= 5)
		{
			my ($type, $length) = unpack 'a N', $self->{buffer};

			last if length $self->{buffer} < 1 + $length;
			push @messages, [ $type, substr($self->{buffer}, 5, $length - 4) ];
			substr($self->{buffer}, 0, 1 + $length, '');
			return @messages if index($last, $type) >= 0;
		}
		die 'the server does not answer'
		  unless IO::Select->new($self->{socket})->can_read($ENV{PG_TEST_TIMEOUT_DEFAULT} || 180);
		my $n = sysread $self->{socket}, $self->{buffer}, 1 << 18, length $self->{buffer};
		return (@messages, [ '', '' ]) unless $n;
	}
}

sub error_text
{
	my ($body) = @_;
	my %field = map { substr($_, 0, 1) => substr($_, 1) } grep { length } split /\0/, $body;

	return "$field{S}: $field{C}: $field{M}";
}

# What messages say, as { rows => [ 'a|b', ... ], end => ..., error => ... }:
# end is 'suspended', 'complete', 'error', 'ready' or 'gone'
sub answer
{
	my (@messages) = @_;
	my %end = (s => 'suspended', C => 'complete', I => 'complete', E => 'error', Z => 'ready', '' => 'gone');
	my %answer = (rows => [], error => '', end => $end{ $messages[-1][0] });

	for my $message (@messages)
	{
		my ($type, $body) = @$message;

		if ($type eq 'D')
		{
			my $n = unpack 'n', substr($body, 0, 2, '');
			my @values;

			for (1 .. $n)
			{
				my $length = unpack 'l>', substr($body, 0, 4, '');
				push @values, $length < 0 ? '' : substr($body, 0, $length, '');
			}
			push @{ $answer{rows} }, join('|', @values);
		}
		elsif ($type eq 'E')
		{
			$answer{error} .= error_text($body);
		}
	}
	return \%answer;
}

# Up to so many rows of a portal; 0: all that are left
sub fetch
{
	my ($self, $portal, $rows) = @_;

	return answer($self->execute($portal, $rows)->put('H', '')->receive('sCIE'));
}

# A command by the simple protocol
sub query
{
	my ($self, $sql) = @_;

	return answer($self->put('Q', "$sql\0")->receive('Z'));
}

# End all that was begun: the answer to Sync, with the error if there was one
sub ready
{
	my ($self) = @_;

	return answer($self->sync->receive('Z'));
}

sub quit
{
	my ($self) = @_;

	eval { $self->put('X', '')->send };
	close $self->{socket};
}

1;
