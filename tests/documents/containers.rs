//! The pod of `docs/containers.md`: its init container, its program and a report, with bubblewrap instead of Kubernetes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::harness::{CommandOutput, Program, TestCommand, TestDirectory, library, repository, trace_cat};

/// What the page says of a container.
#[derive(Debug)]
struct Container {
    command: Vec<String>,
    /// The items of its lists that are mappings, such as `{name: trace, mountPath: /trace}`.
    mappings: Vec<BTreeMap<String, String>>,
}

impl Container {
    /// The one below a heading of the page.
    fn of_page(page: &str, heading: &str) -> Container {
        let (_, after) = page.split_once(&format!("\n  {heading}:\n")).expect(heading);
        let lines: Vec<&str> = after.lines().take_while(|line| line.starts_with("    ")).map(str::trim).collect();
        let scalar = |text: &str| text.trim_matches('"').to_owned();
        let entry = |entry: &str| {
            let (key, value) = entry.split_once(": ").expect(entry);
            (key.to_owned(), scalar(value))
        };
        let items = lines.iter().filter_map(|line| line.strip_prefix("- {")?.strip_suffix('}'));
        let command = lines.iter().find_map(|line| line.strip_prefix("command: [")?.strip_suffix(']'));
        Container {
            command: command.unwrap_or_default().split(", ").map(scalar).collect(),
            mappings: items.map(|item| item.split(", ").map(entry).collect()).collect(),
        }
    }

    /// The mappings that have a key, as name and value.
    fn with<'a>(&'a self, key: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.mappings.iter().filter_map(move |mapping| Some((&*mapping["name"], &**mapping.get(key)?)))
    }

    /// bubblewrap with an image, given as its options, and the volumes and variables of the page, and nothing else. A volume is a
    /// directory of the test's.
    fn command<'a>(&self, test: &'a TestDirectory, image: &[&str]) -> TestCommand<'a> {
        let options = ["--unshare-all", "--die-with-parent", "--clearenv", "--proc", "/proc", "--dev", "/dev"];
        let mut command = test.native("bwrap").args(image).args(options);
        for (volume, path) in self.with("mountPath") {
            let is_read_only = self.with("readOnly").any(|(name, value)| (name, value) == (volume, "true"));
            command = command.arg(if is_read_only { "--ro-bind" } else { "--bind" });
            command = command.arg(test.directory().join(volume)).arg(path);
        }
        self.with("value").fold(command, |command, (name, value)| command.args(["--setenv", name, value]))
    }
}

/// Copies a program and the libraries that it needs into the root of a system.
fn install(test: &TestDirectory, program: &Path, root: &Path) {
    let output = test.native("ldd").arg(program).run();
    let words = output.success().stdout_text().split_whitespace();
    let libraries: BTreeSet<&Path> = words.map(Path::new).filter(|path| path.is_absolute()).collect();
    assert!(!libraries.is_empty(), "{output:?}");
    for library in libraries {
        let copy = root.join(library.strip_prefix("/").unwrap());
        fs::create_dir_all(copy.parent().unwrap()).unwrap();
        fs::copy(library, copy).unwrap();
    }
}

#[test]
fn a_pod_records_a_program_in_an_image_that_has_nothing_of_ours() {
    let page = fs::read_to_string(repository().join("docs/containers.md")).unwrap();
    let [init, app] = ["initContainers", "containers"].map(|heading| Container::of_page(&page, heading));
    let test = TestDirectory::new("containers");
    let [threadt, image, package] = ["threadt", "image", "package"].map(|name| test.directory().join(name));
    // The image: a program, its libraries, and directories to mount something in.
    let program = Program::c("../../docs/tour/resize.c");
    install(&test, program.path(), &image);
    for directory in ["proc", "dev", "threadt", "trace"] {
        fs::create_dir(image.join(directory)).unwrap();
    }
    for name in ["resize", "other"] {
        fs::copy(program.path(), image.join(name)).unwrap();
    }
    // trace-cat needs fewer libraries where it is built for packages.
    install(&test, &trace_cat(), &image);
    for (file, name) in [(library(), "lib/libthreadt.so"), (trace_cat(), "bin/trace-cat")] {
        fs::create_dir_all(package.join(name).parent().unwrap()).unwrap();
        fs::copy(file, package.join(name)).unwrap();
    }
    fs::create_dir(&threadt).unwrap();

    let system = ["--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib"];
    let copy = init.command(&test, &system).args(["--symlink", "usr/lib64", "/lib64", "--ro-bind"]);
    copy.arg(&package).arg("/opt/threadt").args(&init.command).run().success();

    let image = ["--ro-bind", image.to_str().unwrap(), "/"];
    let in_image = |arguments: &[&str]| -> CommandOutput { app.command(&test, &image).args(arguments).run() };
    assert_eq!(in_image(&["/resize"]).success().stdout_text(), "300 pictures\n");
    let files = || fs::read_dir(test.trace_directory()).unwrap().count();
    let recorded = files();
    assert_eq!(in_image(&["/other"]).success().stdout_text(), "300 pictures\n");
    assert_eq!(files(), recorded, "a program of another name is not recorded");
    let report = |options: &[&str]| in_image(&[&["/threadt/bin/trace-cat", "report", "/trace"], options].concat());
    let page = report(&[]);
    for expected in [" exited: /resize\n", "\nmutex log_lock 0x"] {
        assert!(page.success().stdout_text().contains(expected), "{expected}: {page:?}");
    }
    let sites = report(&["--by", "site"]);
    assert!(sites.success().stdout_text().contains(" write_log resize.c:25\n"), "{sites:?}");
}
