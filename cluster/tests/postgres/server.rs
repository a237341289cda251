//! PostgreSQL servers of a test: a primary, and standbys of it, as children of the test.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The programs of PostgreSQL, and who runs them: it refuses to be run by root.
#[derive(Debug, Clone)]
pub(crate) struct Programs {
    directory: PathBuf,
    user: Option<(u32, u32)>,
}

impl Programs {
    /// Finds them, in `GRAINSTORE_POSTGRES` or where Debian has them; a test without them says so and ends.
    pub(crate) fn find() -> Option<Self> {
        let named = std::env::var_os("GRAINSTORE_POSTGRES").map(PathBuf::from);
        let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
        let mut installed: Vec<_> =
            versions.flatten().map(|version| version.path().join("bin")).collect();
        installed.sort();
        let candidates = named.into_iter().chain(installed.into_iter().rev());
        let found = candidates.into_iter().find(|directory| directory.join("initdb").exists());
        let Some(directory) = found else {
            eprintln!("skipped: there is no PostgreSQL (GRAINSTORE_POSTGRES names its programs)");
            return None;
        };
        let root = Command::new("id").arg("-u").output().unwrap().stdout == b"0\n";
        let user = root.then(|| {
            let number = |flag| {
                let said = Command::new("id").args([flag, "postgres"]).output().unwrap().stdout;
                String::from_utf8(said).unwrap().trim().parse().unwrap()
            };
            (number("-u"), number("-g"))
        });
        Some(Self { directory, user })
    }

    fn command(&self, name: &str) -> Command {
        let mut command = Command::new(self.directory.join(name));
        if let Some((user, group)) = self.user {
            command.uid(user).gid(group);
        }
        command.env("LC_ALL", "C").current_dir("/").stdin(Stdio::null());
        command
    }

    fn run(&self, name: &str, arguments: &[&str]) {
        let output = self.command(name).args(arguments).output().unwrap();
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

/// A server.
pub(crate) struct Server {
    programs: Programs,
    directory: PathBuf,
    pub(crate) port: u16,
    child: Option<Child>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A client whose statements last.
pub(crate) struct Asking(Child);

impl Drop for Asking {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

impl Server {
    /// Starts a primary in a new directory.
    pub(crate) fn primary(programs: &Programs, directory: &Path) -> Self {
        let name = directory.to_str().unwrap();
        make(programs, directory);
        programs.run("initdb", &["-D", name, "-U", "grain", "--auth=trust", "-N", "-E", "UTF8"]);
        let settings = "listen_addresses = '127.0.0.1'\nmax_connections = 60\nwal_level = replica\n\
                        max_wal_senders = 8\nhot_standby = on\nwal_keep_size = 256MB\n\
                        wal_log_hints = on\nshared_buffers = 32MB\nmax_wal_size = 256MB\n";
        append(&directory.join("postgresql.conf"), settings);
        append(&directory.join("pg_hba.conf"), "host replication all 127.0.0.1/32 trust\n");
        let mut server = Self {
            programs: programs.clone(),
            directory: directory.to_owned(),
            port: free_port(),
            child: None,
        };
        server.start();
        server
    }

    /// Starts a standby of a server, which waits for it from now on.
    pub(crate) fn standby(&self, directory: &Path) -> Self {
        self.standby_at(directory, free_port())
    }

    /// The same, on a port.
    pub(crate) fn standby_at(&self, directory: &Path, own_port: u16) -> Self {
        let (port, name) = (self.port.to_string(), directory.to_str().unwrap());
        make(&self.programs, directory);
        let copy = ["-h", "127.0.0.1", "-p", &port, "-U", "grain", "-D", name, "-R", "-c", "fast"];
        self.programs.run("pg_basebackup", &copy);
        let application = format!(
            "primary_conninfo = 'host=127.0.0.1 port={port} user=grain application_name=standby'\n\
             synchronous_standby_names = ''\n"
        );
        append(&directory.join("postgresql.auto.conf"), &application);
        let mut standby = Self {
            programs: self.programs.clone(),
            directory: directory.to_owned(),
            port: own_port,
            child: None,
        };
        standby.start();
        self.sql("ALTER SYSTEM SET synchronous_standby_names = 'standby'");
        self.sql("SELECT pg_reload_conf()");
        self.wait_for("SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'");
        standby
    }

    pub(crate) fn start(&mut self) {
        // A killed server leaves this, with a number that another process may have by now.
        let _ = fs::remove_file(self.directory.join("postmaster.pid"));
        let mut log = fs::OpenOptions::new();
        let log = log.create(true).append(true).open(self.directory.with_extension("log")).unwrap();
        let mut command = self.programs.command("postgres");
        command.arg("-D").arg(&self.directory).args(["-p", &self.port.to_string()]);
        command.arg("-k").arg(&self.directory);
        command.stdout(log.try_clone().unwrap()).stderr(log);
        self.child = Some(command.spawn().unwrap());
        self.wait_for("SELECT true");
    }

    /// Kills the server: its children notice that it is gone.
    pub(crate) fn kill(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        let _ = child.kill();
        let _ = child.wait();
        // They hold the shared memory until then.
        thread::sleep(Duration::from_millis(300));
    }

    /// Makes a standby the primary.
    pub(crate) fn promote(&self) {
        self.programs.run("pg_ctl", &["promote", "-D", self.directory.to_str().unwrap(), "-w"]);
    }

    /// Sends a signal to the server and its children.
    pub(crate) fn signal(&self, signal: &str) {
        let of = self.child.as_ref().unwrap().id().to_string();
        let children = Command::new("pgrep").args(["-P", &of]).output().unwrap().stdout;
        let children = String::from_utf8(children).unwrap();
        let all = children.split_whitespace().chain([&*of]);
        assert!(Command::new("kill").arg(signal).args(all).status().unwrap().success());
    }

    /// Begins statements that last; dropping it ends who asked.
    pub(crate) fn psql(&self, statements: &str) -> Asking {
        let mut psql = self.programs.command("psql");
        psql.args(["-h", "127.0.0.1", "-p", &self.port.to_string(), "-U", "grain", "postgres"]);
        psql.args(["-X", "-q", "-c", statements]);
        Asking(psql.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    pub(crate) fn try_sql(&self, statement: &str) -> Option<String> {
        let output = self
            .programs
            .command("psql")
            .args(["-h", "127.0.0.1", "-p", &self.port.to_string(), "-U", "grain", "postgres"])
            .args(["-X", "-A", "-t", "-q", "-c", statement])
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap().trim().to_owned();
        output.status.success().then_some(text)
    }

    pub(crate) fn sql(&self, statement: &str) -> String {
        self.try_sql(statement).unwrap_or_else(|| panic!("{statement}"))
    }

    pub(crate) fn wait_for(&self, statement: &str) {
        let began = Instant::now();
        while self.try_sql(statement).as_deref() != Some("t") {
            assert!(began.elapsed() < Duration::from_secs(60), "{statement}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("host=127.0.0.1 port={} user=grain dbname=postgres", self.port)
    }
}

fn make(programs: &Programs, directory: &Path) {
    fs::create_dir(directory).unwrap();
    fs::set_permissions(directory, fs::Permissions::from_mode(0o700)).unwrap();
    if let Some((user, group)) = programs.user {
        std::os::unix::fs::chown(directory, Some(user), Some(group)).unwrap();
    }
}

fn append(file: &Path, text: &str) {
    let before = fs::read_to_string(file).unwrap_or_default();
    fs::write(file, before + "\n" + text).unwrap();
}

/// A directory that a server of another user reaches.
pub(crate) fn open_directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    directory
}
