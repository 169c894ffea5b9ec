# Which tests run, and running them side by side.
#
# A test's name is SUITE/NAME; test/parts has all of them, each in one part.
# Tests that share a server or a build make one job, every other test is one.
# Jobs run in subshells, as many at a time as "workers" says, in the order of
# test/parts; each prints what it has to say when it has ended.
#
#	select_jobs PART NAME...	sets jobs, and job_tests of each; without NAME every test,
#								else those that a NAME is or begins, up to a "/"
#	run_jobs					runs them, and adds to passed and failed
#	suite_ok, suite_bad			tests passed and failed, by suite
#	begin_progress COMMAND		prints every 15 seconds what COMMAND says is under way
#	end_progress

progress_s=15

begin_progress()
{
	(while sleep $progress_s; do echo "   $((SECONDS - started)) s: $("$@")"; done) 2>/dev/null 9>&- &
	ticker=$!	# also for clean_up
}

end_progress()
{
	kill_tree "$ticker"
	wait "$ticker" 2>/dev/null
	ticker=
}

declare -A job_tests=() suite_ok=() suite_bad=()
jobs=()

# "PART NAME" for each line of test/parts, with the differential tester's cases
# as the environment wants them
list_tests()
{
	awk '!/^#/ && NF { print $1, $2 }' "$root/test/parts" |
		if [ -n "${FUZZ_CASES-}${FUZZ_FIRST-}" ]; then
			grep -v ' fuzz/'
			echo "quick fuzz/${FUZZ_FIRST:-1}-$((${FUZZ_FIRST:-1} + ${FUZZ_CASES:-120} - 1))"
		else
			cat
		fi
}

# The job that runs a test
job_of()
{
	case $1 in
		regress/*|isolation/*) echo "${1%%/*}" ;;
		unit/*) echo "${1%/*}" ;;
		*) echo "$1" ;;
	esac
}

is_wanted()
{
	local test=$1 name
	shift

	[ $# -gt 0 ] || return 0
	for name; do
		case $test in "$name"|"$name"/*) return 0 ;; esac
	done
	return 1
}

select_jobs()
{
	local part=$1 line_part test job
	shift

	jobs=()
	job_tests=()
	while read -r line_part test; do
		[ "$line_part" = "$part" ] && is_wanted "$test" "$@" || continue
		job=$(job_of "$test")
		[ -n "${job_tests[$job]-}" ] || jobs+=("$job")
		job_tests[$job]+=" ${test#"$job"/}"
	done < <(list_tests)
}

# Run a job; its output, and the tests passed and failed, are left in files
start_job()
{
	local job=$1 number=$2

	(
		passed=0
		failed=0
		start=$SECONDS
		server_port=$((5432 + number))
		run_job "$job" ${job_tests[$job]}
		[ "$failed" -eq 0 ] && verdict=ok || verdict="not ok"
		echo "$verdict - $job: $passed passed, $failed failed ($((SECONDS - start)) s)"
		echo "$passed $failed" >"$work/job-$number.counts"
	) >"$work/job-$number.out" 2>&1 &
}

# Print what an ended job has left, and count it; one that left no counts has failed
finish_job()
{
	local job=$1 number=$2 ok=0 bad=1 suite=${1%%/*}

	cat "$work/job-$number.out"
	if [ -s "$work/job-$number.counts" ]; then
		read -r ok bad <"$work/job-$number.counts"
	else
		echo "not ok - $job: ended early"
	fi
	rm -f "$work/job-$number".*
	passed=$((passed + ok))
	failed=$((failed + bad))
	suite_ok[$suite]=$((${suite_ok[$suite]-0} + ok))
	suite_bad[$suite]=$((${suite_bad[$suite]-0} + bad))
}

# Which jobs run, with their tests that have ended; run_jobs keeps the file
say_running()
{
	local left job running=()

	read -r left jobs <"$work/running"
	for job in $jobs; do
		case $job in
			regress|isolation)
				job+=" ($(cat "$log/$job-$part.log" 2>/dev/null | grep -cE '\.\.\. |^(not )?ok ') of $(wc -w <<<"${job_tests[$job]}") tests)"
				;;
		esac
		running+=("$job")
	done
	printf -v running '%s, ' "${running[@]}"
	echo "jobs left: $left, running: ${running%, }"
}

run_jobs()
{
	local -A running=()
	local next=0 pid

	: >"$work/running"
	begin_progress say_running
	while [ $next -lt ${#jobs[@]} ] || [ ${#running[@]} -gt 0 ]; do
		while [ $next -lt ${#jobs[@]} ] && [ ${#running[@]} -lt "$workers" ]; do
			start_job "${jobs[$next]}" $next
			running[$!]=$next
			next=$((next + 1))
		done
		echo "$((${#jobs[@]} - next + ${#running[@]}))" \
			"$(for pid in "${!running[@]}"; do echo "${jobs[${running[$pid]}]}"; done | sort | paste -sd' ')" >"$work/running"
		child=${!running[*]}	# for clean_up
		wait -n
		for pid in "${!running[@]}"; do
			if ! kill -0 "$pid" 2>/dev/null; then
				finish_job "${jobs[${running[$pid]}]}" "${running[$pid]}"
				unset "running[$pid]"
			fi
		done
	done
	end_progress
	child=
}
