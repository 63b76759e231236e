//! Servers that root starts, and that give up root before they serve: with the default recording nothing is lost, and what
//! was recorded afterwards belongs to the new user alone. Only root may do this: elsewhere these tests print a message and test
//! nothing.

use std::collections::HashSet;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use super::super::harness::{RunningCommand, TestDirectory, Trace};
use super::super::hostile::{open_to_all, privileged};

const NOBODY: u32 = 65534;
const CLIENTS: usize = 4;

/// A trace directory that only root may write to, and a port that is free now. `None` for others than root.
fn prepare(name: &str) -> Option<(TestDirectory, u16)> {
    let test = TestDirectory::new(name);
    if !privileged(&test) {
        return None;
    }
    open_to_all(&test);
    fs::set_permissions(test.trace_directory(), fs::Permissions::from_mode(0o755)).unwrap();
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
    Some((test, port))
}

/// Connects as soon as the server listens.
#[track_caller]
fn connect(server: &mut RunningCommand, port: u16) -> BufReader<TcpStream> {
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        match TcpStream::connect((Ipv4Addr::LOCALHOST, port)) {
            Ok(stream) => return BufReader::new(stream),
            Err(error) => assert!(Instant::now() < deadline && !server.has_ended(), "no server: {error}"),
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// Sends a request, and fails unless the answer begins with these lines.
#[track_caller]
fn ask(server: &mut BufReader<TcpStream>, request: &str, answer: &[&str]) {
    server.get_mut().write_all(request.as_bytes()).unwrap();
    for expected in answer {
        let mut line = String::new();
        server.read_line(&mut line).unwrap();
        assert_eq!(line.trim_end(), *expected, "to {request:?}");
    }
}

/// Lets clients do `work`, all at the same time.
fn serve(work: impl Fn(usize) + Sync) {
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            let work = &work;
            scope.spawn(move || work(client));
        }
    });
}

/// The merged trace. Fails if records were lost, if none are the new user's, or if somebody else could read them.
#[track_caller]
fn assert_nothing_lost(test: &TestDirectory) -> Trace {
    let trace = test.merged();
    assert_eq!(trace.of("trace_lost").len(), 0);
    let directory = test.trace_directory().join(format!("u{NOBODY}"));
    let metadata = fs::metadata(&directory).unwrap();
    assert_eq!((metadata.uid(), metadata.mode() & 0o777), (NOBODY, 0o700));
    let mut size = 0;
    for entry in fs::read_dir(&directory).unwrap() {
        let entry = entry.unwrap();
        let (name, file) = (entry.file_name().into_string().unwrap(), entry.metadata().unwrap());
        assert_eq!((file.uid(), file.mode() & 0o777), (NOBODY, 0o600), "{name}");
        assert!(!name.starts_with("trbuf."), "{name} was left behind");
        if name.starts_with("tr.") {
            size += file.len();
        }
    }
    assert!(size > 0, "the new user recorded nothing");
    trace
}

#[test]
fn memcached() {
    let Some((test, port)) = prepare("memcached") else { return };
    let arguments = ["-u", "nobody", "-l", "127.0.0.1", "-t", "4", "-p", &port.to_string()].map(str::to_owned);
    let mut server = test.traced("memcached").args(arguments).spawn();
    connect(&mut server, port);
    serve(|client| {
        let mut stream = BufReader::new(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap());
        for number in 0..300 {
            let key = format!("k{client}_{number}");
            ask(&mut stream, &format!("set {key} 0 0 5\r\nhello\r\n"), &["STORED"]);
            ask(&mut stream, &format!("get {key}\r\n"), &[&format!("VALUE {key} 0 5"), "hello", "END"]);
        }
    });
    server.signal(libc::SIGTERM);
    assert!(server.wait().status.success());
    assert!(assert_nothing_lost(&test).of("mutex_lock").len() > 2 * CLIENTS * 300);
}

#[test]
fn nginx() {
    let Some((test, port)) = prepare("nginx") else { return };
    let path = |name: &str| test.directory().join(name).to_str().unwrap().to_owned();
    fs::write(path("index.html"), "hello\n").unwrap();
    fs::set_permissions(path("index.html"), fs::Permissions::from_mode(0o644)).unwrap();
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("{kind}_temp_path {};\n", path(&format!("temporary-{kind}"))))
        .concat();
    let configuration = format!(
        "user nobody nogroup;\nworker_processes 2;\ndaemon off;\npid {};\nerror_log {};\nevents {{}}\n\
         http {{ access_log off; aio threads; {temporary} server {{ listen 127.0.0.1:{port}; root {}; }} }}\n",
        path("pid"),
        path("error_log"),
        test.directory().display()
    );
    fs::write(path("nginx.conf"), configuration).unwrap();
    let mut server = test.traced("/usr/sbin/nginx").arg("-c").arg(path("nginx.conf")).spawn();
    connect(&mut server, port);
    serve(|_| {
        for _ in 0..100 {
            let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
            stream.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("\r\n\r\nhello\n"), "{answer}");
        }
    });
    server.signal(libc::SIGQUIT);
    assert!(server.wait().status.success());
    assert!(assert_nothing_lost(&test).of("mutex_lock").len() > CLIENTS * 100);
    // The workers' records, which are in the subdirectory, are of the same run.
    let last = Trace::parse("--last", &test.trace_cat().arg("--last").run().stdout);
    assert_eq!(last.records.len(), test.merged().records.len());
}

#[test]
fn mariadb() {
    let Some((test, port)) = prepare("mariadb") else { return };
    let data = test.directory().join("data");
    fs::create_dir(&data).unwrap();
    chown(&data, Some(NOBODY), None).unwrap();
    let [data, socket] = [data.clone(), data.join("socket")].map(|path| path.to_str().unwrap().to_owned());
    let directory = format!("--datadir={data}");
    let install = ["--no-defaults", "--user=nobody", "--auth-root-authentication-method=normal", &directory];
    test.native("mariadb-install-db").args(install).run().success();
    let (port_option, socket_option) = (format!("--port={port}"), format!("--socket={socket}"));
    let options = ["--no-defaults", "--user=nobody", "--bind-address=127.0.0.1", "--skip-log-error", &directory];
    let server = test.traced("/usr/sbin/mariadbd").args(options).args([&port_option, &socket_option]);
    let mut server = server.spawn();
    connect(&mut server, port);
    let client = |statements: &str| {
        let mut client = Command::new("mariadb");
        client.args(["--no-defaults", "-N", "-u", "root", &socket_option, "-e", statements]);
        let output = client.output().unwrap();
        assert!(output.status.success(), "{statements}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    client("create database test1; create table test1.t(n int)");
    serve(|_| {
        let insert = "insert into test1.t values (1),(2),(3); ".repeat(50);
        assert_eq!(client(&insert), "");
    });
    assert_eq!(client("select count(*), sum(n) from test1.t"), "600\t1200\n");
    server.signal(libc::SIGTERM);
    assert!(server.wait().status.success());
    assert!(assert_nothing_lost(&test).of("mutex_lock").len() > 1000);
}

/// It refuses to be root's: `setpriv`, which is recorded as well, executes it as another user.
#[test]
fn postgres() {
    let Some((test, port)) = prepare("postgres") else { return };
    let newest = fs::read_dir("/usr/lib/postgresql").unwrap().map(|version| version.unwrap().path()).max().unwrap();
    let program = |name: &str| newest.join("bin").join(name);
    let data = test.directory().join("data");
    fs::create_dir(&data).unwrap();
    chown(&data, Some(NOBODY), None).unwrap();
    let data = data.to_str().unwrap();
    let as_nobody = ["--reuid=65534", "--regid=65534", "--clear-groups"];
    let initialise =
        test.native("setpriv").args(as_nobody).arg(program("initdb")).args(["-A", "trust", "-N", "-D", data]);
    initialise.run().success();
    let port = port.to_string();
    let server = test.traced("setpriv").args(as_nobody).arg(program("postgres"));
    let server = server.args(["-D", data, "-k", data, "-p", &port, "-c", "listen_addresses=127.0.0.1"]);
    let mut server = server.spawn();
    connect(&mut server, port.parse().unwrap());
    let client = |statements: &str| {
        let mut client = Command::new(program("psql"));
        client.args(["-h", "127.0.0.1", "-p", &port, "-U", "nobody", "-d", "postgres", "-qAtc", statements]);
        let output = client.output().unwrap();
        (output.status.success(), String::from_utf8(output.stdout).unwrap())
    };
    // It may listen before it serves.
    let deadline = Instant::now() + Duration::from_secs(120);
    while !client("create table if not exists t(n int)").0 {
        assert!(Instant::now() < deadline && !server.has_ended(), "it does not serve");
        thread::sleep(Duration::from_millis(10));
    }
    serve(|_| assert_eq!(client("insert into t select generate_series(1, 100)"), (true, String::new())));
    assert_eq!(client("select count(*), sum(n) from t"), (true, "400|20200\n".to_owned()));
    server.signal(libc::SIGINT);
    assert!(server.wait().status.success());
    let trace = assert_nothing_lost(&test);
    let processes: HashSet<&str> = trace.records.iter().map(|record| record.line.split(':').nth(2).unwrap()).collect();
    assert!(processes.len() > CLIENTS, "{processes:?}");
}
