# make            build target/release/libthreadt.so and target/release/trace-cat
# make demo       record three small programs, each with a typical problem, and print what the report says (docs/tour.md)
# make demo-sort  record a parallel sort, and print parts of its trace
# make test       install what the tests need, build, run every test
# make test-glibc run programs under other versions of glibc, from Debian's packages, which apt downloads into target/glibc
#                 (GLIBC="untried-rwlocks bullseye bookworm trixie sid")
# make test-sql
#               compare tables in DuckDB, Spark SQL and pyarrow with the report; installs the engines from PyPI below target/
# make test-fleet run the fleet's job in Spark with a heap of 1 GiB, compare its sums with the report, and print what a record costs in
#                 fleets of 1, 10 and 100 hosts (FLEET_HOSTS="1 10 100", FLEET_RECORDS=20000000 of the largest)
# make setup      only install what the tests need
# make bench      measure what recording costs, beside LTTng-UST and uftrace, which it installs: BENCH_ROUNDS=7,
#                 BENCH_ONLY="mutex-1 programs lttng" (workloads, groups, ways), BENCH_AGAINST=BUILD-DIRECTORY of another version
# make bench-parts
#                 measure what the encoder, a buffer and a flush cost a record
# make bench-merge
#                 measure trace-cat beside sort -m and cat, -F text beside babeltrace2, which it installs with LTTng
#                 (BENCH_ROUNDS, BENCH_RECORDS), reports beside trace-cat (BENCH_ONLY=report only these, in two minutes), and the memory
#                 of both (BENCH_FILES, BENCH_GIGABYTES; BENCH_MEMORY=RECORDS that of reports; BENCH_ONLY=memory only that)
# make bench-symbols
#                 measure a report on a program with 500 MB of debug information
# make bench-follow
#                 measure what trace-cat --follow costs the program, and how soon it prints (BENCH_ROUNDS)
# make soak       kill, end and fork traced programs by the thousand, for minutes (SOAK, THREADT_SEED)
# make test-load  run the suite RUNS times while stress-ng, which it installs, keeps the machine busy: tests that fail by chance show.
#                 Fifty runs take some ten hours on two cores
# make fuzz       mutate the input of the format's decoders, then of trace-cat's readers, for FUZZ_SECONDS each (FUZZ_SEED)
# make miri       run unit tests under Miri, which finds undefined behaviour. It needs a nightly toolchain with Miri: where
#                 there is none, it prints how to install that, and succeeds. It takes minutes and is no part of make test
# make man        target/man/*: the manual pages
# make completions
#                 target/completions/*: what bash, fish and zsh complete for trace-cat
# make install    to $(DESTDIR)$(PREFIX)
# make install-headers
#                 only threadt.h and threadt.pc, for programs that record events of their own
# make packages   target/packages: a Debian package, a tarball for any x86-64 Linux with glibc 2.28 or newer, and a Python wheel
# make deb dist wheel
#                 one of them; the wheel has trace-cat, the library and a module that reads traces, for pip
# make test-packages
#                 install, use and remove them in fresh Debian systems, as root (SUITES="bullseye bookworm trixie")
# make test-wheel install, use and remove the wheel in a fresh environment of Python
# make test-reproducible
#                 build them twice, in two directories, and compare the bytes. It takes twice as long as make packages
# make clean      remove what was built

CARGO ?= cargo
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
PKGCONFIGDIR ?= $(PREFIX)/lib/pkgconfig
PC_PREFIX ?= $(PREFIX)
SOAK ?= long
RUNS ?= 50
SUITES ?= bullseye bookworm trixie
GLIBC ?= untried-rwlocks bullseye bookworm trixie sid
FUZZ_SECONDS ?= 60
FUZZ_SEED ?=

# What runs under Miri: all tests of spec, and the unit tests of the other crates that these filters select. Miri interprets
# neither inline assembly nor most system calls on files, and takes too long for tests of many thousand rounds; the protocol of
# slots and rings is tested by libthreadt/src/lifecycle/interleaving_tests.rs instead.
MIRI_LIBTHREADT := storage::flush_point ring::tests::a_ring_that
MIRI_TRACE_CAT := calls::call_assembler calls::object_columns

TARGET := $(or $(CARGO_TARGET_DIR),target)
RELEASE := $(TARGET)/release
PACKAGES := $(TARGET)/packages
LIBRARY ?= $(RELEASE)/libthreadt.so
PROGRAM ?= $(RELEASE)/trace-cat
MAN := $(TARGET)/man
COMPLETIONS := $(TARGET)/completions
DOCUMENTS := $(TARGET)/documents
PAGES := $(addprefix $(MAN)/,$(patsubst %.in,%,$(notdir $(wildcard */man/*.in))))
DOCS := $(wildcard *.md docs/*.md docs/tour/*)
SHARE = $(DESTDIR)$(PREFIX)/share

.PHONY: all toolchain demo demo-sort test test-load test-glibc test-sql test-fleet setup soak bench bench-parts bench-merge bench-symbols bench-follow fuzz miri man completions documents install install-files install-headers packages deb dist test-packages test-reproducible wheel test-wheel clean

all: toolchain
	$(CARGO) build --release --locked

# Naked functions need Rust 1.88. An older compiler would report errors of syntax instead.
toolchain:
	@sh tests/toolchain $(CARGO)

demo: all
	@sh tests/demo $(RELEASE)

demo-sort: all
	@sh tests/demo-sort $(RELEASE)

setup:
	@sh tests/setup

# The preloaded library is a cdylib that no test depends on: cargo test by itself does not build it.
test: setup all
	THREADT_TARGET=$(abspath $(RELEASE)) sh tests/run $(CARGO)

test-load: setup all
	@sh tests/setup load
	THREADT_TARGET=$(abspath $(RELEASE)) sh tests/repeat $(RUNS) $(CARGO)

test-glibc: setup all
	THREADT_TARGET=$(abspath $(RELEASE)) sh tests/glibc $(abspath $(TARGET)) $(CARGO) $(GLIBC)

test-sql: all
	tests/sql/run $(RELEASE) $(TARGET) compare.py

export FLEET_HOSTS FLEET_RECORDS
test-fleet: all
	tests/sql/run $(RELEASE) $(TARGET) fleet.py

# The tests run one after the other, so that the disk holds one trace at a time.
soak: all
	THREADT_SOAK=$(SOAK) THREADT_TARGET=$(abspath $(RELEASE)) \
		$(CARGO) test --locked -p tests --test suite -- --nocapture --test-threads=1 soak::

# Make starts the benchmark without a shell between them: a signal to make's group ends the benchmark, which ends its daemons.
export BENCH_ROUNDS BENCH_ONLY BENCH_AGAINST
bench: all
	@sh tests/setup bench
	$(CARGO) build --release --locked -p bench
	@$(RELEASE)/bench $(RELEASE)

export BENCH_RECORDS BENCH_FILES BENCH_GIGABYTES BENCH_MEMORY
bench-merge: all
	@sh tests/setup bench
	@sh tests/bench/merge $(RELEASE)

bench-symbols: all
	@sh tests/bench/symbols $(RELEASE)

bench-follow: all
	@sh tests/bench/follow $(RELEASE)

bench-parts: toolchain
	$(CARGO) bench --locked -p spec --bench encode
	$(CARGO) test --release --locked -p libthreadt --lib -- --ignored --nocapture storage::benches

fuzz: toolchain
	THREADT_FUZZ_SECONDS=$(FUZZ_SECONDS) $(if $(FUZZ_SEED),THREADT_SEED=$(FUZZ_SEED)) \
		$(CARGO) test --release --locked -p spec --test mutation -- --nocapture
	THREADT_FUZZ_SECONDS=$(FUZZ_SECONDS) $(if $(FUZZ_SEED),THREADT_SEED=$(FUZZ_SEED)) \
		$(CARGO) test --release --locked -p trace-cat --lib -- --nocapture

# No other target needs a nightly toolchain, so its absence is no failure.
miri:
	@if ! $(CARGO) +nightly miri --version >/dev/null 2>&1; then \
		echo "make miri: not run: there is no nightly toolchain with Miri (rustup toolchain install nightly --component miri rust-src)"; \
	else \
		set -ex; \
		$(CARGO) +nightly miri test --locked -p spec; \
		$(CARGO) +nightly miri test --locked -p libthreadt --lib -- $(MIRI_LIBTHREADT); \
		$(CARGO) +nightly miri test --locked -p trace-cat --lib -- $(MIRI_TRACE_CAT); \
	fi

man: documents
	@mkdir -p $(MAN)
	$(CARGO) run --release --locked -q -p spec --example thread_trace_man > $(MAN)/thread_trace.5.new
	@mv $(MAN)/thread_trace.5.new $(MAN)/thread_trace.5
	@cp $(addprefix $(DOCUMENTS)/,$(filter-out thread_trace.5,$(notdir $(PAGES)))) $(MAN)/
	@ls $(PAGES)

completions: documents
	@mkdir -p $(COMPLETIONS)
	@cp $(addprefix $(DOCUMENTS)/,trace-cat.bash trace-cat.fish _trace-cat) $(COMPLETIONS)/
	@ls $(COMPLETIONS)/*

# The manual page and the completions come from the table of options.
documents: toolchain
	$(CARGO) run --release --locked -q -p trace-cat --example documents -- $(DOCUMENTS)

VERSION = $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)

install-headers:
	install -D -m 644 threadt/include/threadt.h $(DESTDIR)$(PREFIX)/include/threadt.h
	install -d $(DESTDIR)$(PKGCONFIGDIR)
	sed -e 's|@PREFIX@|$(PC_PREFIX)|' -e 's|@VERSION@|$(VERSION)|' threadt/threadt.pc.in > $(DESTDIR)$(PKGCONFIGDIR)/threadt.pc

install: all install-files

install-files: man completions install-headers
	install -D -m 755 $(LIBRARY) $(DESTDIR)$(LIBDIR)/libthreadt.so
	install -D -m 755 $(PROGRAM) $(DESTDIR)$(PREFIX)/bin/trace-cat
	install -D -m 644 spec/events.tsv $(SHARE)/threadt/events.tsv
	for file in trace-cat/sql/*.sql trace-cat/sql/*.py; do install -D -m 644 $$file $(SHARE)/threadt/sql/$${file##*/} || exit 1; done
	for page in $(DOCS); do install -D -m 644 $$page $(SHARE)/doc/threadt/$$page || exit 1; done
	for page in $(PAGES); do \
		install -D -m 644 $$page $(SHARE)/man/man$${page##*.}/$${page##*/} || exit 1; \
	done
	install -D -m 644 $(COMPLETIONS)/trace-cat.bash $(SHARE)/bash-completion/completions/trace-cat
	install -D -m 644 $(COMPLETIONS)/trace-cat.fish $(SHARE)/fish/vendor_completions.d/trace-cat.fish
	install -D -m 644 $(COMPLETIONS)/_trace-cat $(SHARE)/zsh/site-functions/_trace-cat

packages: dist deb wheel

dist deb: packaged
dist:
	packaging/dist $(PACKAGES) $(VERSION) $(CARGO) $(MAKE)

deb:
	packaging/deb $(PACKAGES) $(VERSION) $(MAKE)

.PHONY: packaged
packaged: toolchain
	packaging/build $(PACKAGES) $(CARGO)

test-packages: packages
	packaging/test $(PACKAGES) $(VERSION) $(SUITES)

wheel: packaged
	packaging/wheel $(PACKAGES) $(VERSION)

test-wheel: wheel
	packaging/test-wheel $(PACKAGES) $(VERSION)

test-reproducible: toolchain
	packaging/reproducible $(PACKAGES) $(VERSION) $(CARGO) $(MAKE)

clean:
	$(CARGO) clean
	rm -rf $(DOCUMENTS) $(MAN) $(COMPLETIONS) tests/failed
