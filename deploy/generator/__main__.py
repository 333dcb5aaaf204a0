"""Write the files of deploy/chart/crds and deploy/chart/dashboards, and remove what is none of them."""

from deploy.generator import ROOT, manifests, stale

if __name__ == "__main__":
    made = manifests()
    for path in stale():
        file = ROOT / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if path in made:
            file.write_text(made[path])
        else:
            file.unlink()
        print(path)  # noqa: T201 - a command
