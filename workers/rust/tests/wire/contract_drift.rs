//! The generated messages are those of the contract.

use std::path::Path;

fn digest(content: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, content);
    digest.as_ref().iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

/// The file is generated from the current contract, and not edited; otherwise run `make proto`.
#[test]
fn the_generated_messages_are_up_to_date() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let generated = std::fs::read_to_string(folder.join("src/contract/admission.worker.v1.rs")).unwrap();
    let contract = std::fs::read(folder.join("../../proto/admission/worker/v1/worker.proto")).unwrap();
    let (first, rest) = generated.split_once('\n').unwrap();
    let (second, messages) = rest.split_once('\n').unwrap();
    assert!(first.contains(&digest(&contract)), "the contract has changed: make proto");
    assert!(second.contains(&digest(messages.as_bytes())), "the file was edited: make proto");
}
