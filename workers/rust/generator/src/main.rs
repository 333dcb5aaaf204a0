//! Generates the contract's messages: `cargo run -- ../../../proto ../src/contract`.
//!
//! Only messages: the SDK dispatches the few RPCs itself (`src/service.rs`), with a codec that rejects an undecodable
//! message as the contract requires. The file begins with two digests, of the contract and of the messages. A test
//! compares them, and fails if the file is out of date or was edited.

use std::error::Error;
use std::path::PathBuf;

const PROTO: &str = "admission/worker/v1/worker.proto";
const GENERATED: &str = "admission.worker.v1.rs";

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1).map(PathBuf::from);
    let (Some(protos), Some(output)) = (arguments.next(), arguments.next()) else {
        return Err("usage: contract-generator PROTO_FOLDER OUTPUT_FOLDER".into());
    };
    let descriptors = protox::compile([PROTO], [&protos])?;
    let folder = std::env::temp_dir().join(format!("contract-generator-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    prost_build::Config::new()
        .bytes(["."])
        .btree_map(["."])
        .out_dir(&folder)
        .compile_fds(descriptors)?;
    let messages = std::fs::read_to_string(folder.join(GENERATED))?;
    std::fs::remove_dir_all(&folder)?;
    let contract = std::fs::read(protos.join(PROTO))?;
    let head = format!(
        "// {}  proto/{PROTO}\n// {}  what follows\n",
        digest(&contract),
        digest(messages.as_bytes())
    );
    std::fs::write(output.join(GENERATED), head + &messages)?;
    Ok(())
}

/// A SHA-256 digest in hexadecimal.
fn digest(content: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, content);
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}
