//! The sample worker as a process: flags, its log and its exit code.

#![allow(missing_docs, reason = "tests")]

#[path = "../../tests/wire/client.rs"]
mod client;

use std::process::Stdio;

use client::{Client, SERVING, calling, is_plain_allow, soon, validating};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, Command};

/// A worker's process, killed with the test.
struct Process {
    child: Child,
    lines: Lines<BufReader<ChildStderr>>,
    address: String,
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_samples"));
    command.args(arguments).stdin(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    command
}

impl Process {
    async fn started(mut command: Command) -> Self {
        let mut child = command.spawn().expect("it starts");
        let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
        let line = soon(lines.next_line()).await.unwrap().expect("a line");
        let (_, rest) = line.split_once("worker samples 0.1.0 listens on ").unwrap_or_else(|| panic!("{line}"));
        let (address, _) = rest.split_once("; policies: default-labels, ").unwrap_or_else(|| panic!("{line}"));
        Self { child, lines, address: address.to_owned() }
    }

    fn signal(&self, name: &str) {
        let id = self.child.id().expect("it runs").to_string();
        assert!(std::process::Command::new("kill").args([name, &id]).status().expect("kill").success());
    }

    async fn code(&mut self) -> Option<i32> {
        soon(self.child.wait()).await.unwrap().code()
    }

    async fn rest(&mut self) -> String {
        let mut text = String::new();
        while let Some(line) = soon(self.lines.next_line()).await.unwrap() {
            text += &line;
            text.push('\n');
        }
        text
    }
}

/// The exit code and the log of a command that cannot serve.
async fn refused(mut command: Command) -> (Option<i32>, String) {
    let output = soon(command.output()).await.unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

/// On SIGTERM open calls are answered, and the exit code is 0.
#[tokio::test]
async fn a_stopped_worker_answers_open_calls() {
    let mut process = Process::started(command(&["--listen", "127.0.0.1:0", "--conformance"])).await;
    let client = Client::connect(&process.address).await;
    assert_eq!(client.health("").await.unwrap(), SERVING);
    let mut stream = client.stream().await;
    let sleep = validating("probe-sleep", r#"{"seconds":1,"token":"a"}"#);
    stream.send(&[], vec![calling(1, sleep), calling(2, validating("probe-version", "{}"))]).await;
    assert_eq!(stream.next().await.unwrap().1.version, "probe-7");
    process.signal("-TERM");
    let (id, outcome) = stream.next().await.unwrap();
    assert!(id == 1 && is_plain_allow(&outcome));
    assert!(stream.next().await.is_none());
    assert_eq!(process.code().await, Some(0));
    let log = process.rest().await;
    assert!(log.contains("SIGTERM received") && log.ends_with("INFO stopped\n"), "{log}");
}

/// A second signal ends it at once.
#[tokio::test]
async fn a_second_signal_ends_it_at_once() {
    let arguments = ["--listen", "127.0.0.1:0", "--conformance", "--grace-period", "3600"];
    let mut process = Process::started(command(&arguments)).await;
    let client = Client::connect(&process.address).await;
    let stream = client.stream().await;
    stream.send(&[], vec![calling(1, validating("probe-sleep", r#"{"seconds":3600,"token":"a"}"#))]).await;
    let mut watch = client.watch("").await;
    assert_eq!(soon(watch.message()).await.unwrap().unwrap().status, SERVING);
    process.signal("-INT");
    assert_eq!(soon(watch.message()).await.unwrap().unwrap().status, client::NOT_SERVING);
    process.signal("-INT");
    assert_eq!(process.code().await, Some(1));
}

/// A supervised worker stops when its supervisor has exited.
#[tokio::test]
async fn a_supervised_worker_stops_with_its_supervisor() {
    let mut supervised = command(&["--listen", "127.0.0.1:0"]);
    supervised.env("ADMISSION_WORKER_SUPERVISED", "1");
    let mut process = Process::started(supervised).await;
    drop(process.child.stdin.take());
    assert_eq!(process.code().await, Some(0));
    assert!(process.rest().await.contains("standard input has ended"));
}

/// A flag overrides its variable; a wrong one is an error of one line and exit code 2.
#[tokio::test]
async fn wrong_flags_are_errors_of_one_line() {
    for (arguments, variable, part) in [
        (vec!["--in-flight", "0"], None, "--in-flight"),
        (vec!["--listen", "nowhere"], None, "must be HOST:PORT"),
        (vec!["--unknown"], None, "--unknown"),
        (vec!["--tls-cert", "x"], None, "--tls-key"),
        (vec!["--client-ca", "x"], None, "--tls-cert"),
        (vec!["--grace-period", "-1"], None, "--grace-period"),
        (vec![], Some(("ADMISSION_WORKER_LOG_FORMAT", "xml")), "--log-format"),
        (vec![], Some(("ADMISSION_WORKER_MESSAGE_BYTES", "many")), "--message-bytes"),
    ] {
        let mut wrong = command(&arguments);
        wrong.envs(variable);
        let (code, text) = refused(wrong).await;
        assert_eq!(code, Some(2), "{text}");
        assert!(text.contains(part) && text.lines().count() == 1, "{text}");
    }
    let mut both = command(&["--listen", "127.0.0.1:0"]);
    both.env("ADMISSION_WORKER_LISTEN", "nowhere");
    Process::started(both).await;
}

/// An address in use, or a missing certificate: one line, exit code 1.
#[tokio::test]
async fn a_worker_that_cannot_listen_exits_with_1() {
    let process = Process::started(command(&["--listen", "127.0.0.1:0"])).await;
    for (arguments, part) in [
        (vec!["--listen", process.address.as_str()], "cannot listen on"),
        (vec!["--listen", "127.0.0.1:0", "--tls-cert", "/nowhere", "--tls-key", "/nowhere"], "/nowhere: No such file"),
    ] {
        let (code, text) = refused(command(&arguments)).await;
        assert_eq!(code, Some(1), "{text}");
        assert!(text.contains(part) && text.lines().count() == 1, "{text}");
    }
}

/// As JSON, each line is an object; a failure has its policy and its uid, and a panic is one line.
#[tokio::test]
async fn logs_are_json_on_request() {
    let arguments = ["--listen", "127.0.0.1:0", "--conformance", "--log-format", "json"];
    let mut process = Process::started(command(&arguments)).await;
    let client = Client::connect(&process.address).await;
    client.review(validating("probe-panic", "{}")).await;
    process.signal("-TERM");
    let log = process.rest().await;
    let lines: Vec<serde_json::Value> = log.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    assert!(lines.iter().all(|line| ["time", "level", "message"].iter().all(|name| line[name].is_string())));
    let panics: Vec<_> = lines.iter().filter(|line| line["message"].as_str().unwrap().contains("a secret")).collect();
    assert_eq!(panics.len(), 1);
    assert_eq!((&panics[0]["uid"], &panics[0]["policy"]), (&"uid-of-the-test".into(), &"probe-panic".into()));
    assert_eq!(panics[0]["level"], "error");
    assert_eq!(process.code().await, Some(0));
}
