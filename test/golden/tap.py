# SPDX-License-Identifier: Apache-2.0
"""What the golden tests in Python share: numbered results, texts that are kept, and schemas of specifications where they are there."""
import json
import os
import warnings


class Tap:
    """Numbered results."""

    def __init__(self):
        self.number = 0
        self.failed = False

    def result(self, name, problems=(), skip=None):
        self.number += 1
        problems = list(problems)
        self.failed |= bool(problems)
        print("%s %d - %s%s" % ("not ok" if problems else "ok", self.number, name, " # SKIP " + skip if skip else ""))
        for problem in problems:
            print("# " + problem)

    def end(self):
        """The exit status."""
        print("1..%d" % self.number)
        return 1 if self.failed else 0


class KeptTexts:
    """The .txt files of a folder, each with what a run gave at its place ("HOST/CASE"); a run compares them, or writes all anew."""

    def __init__(self, tap, folder, update):
        self.tap, self.folder, self.update, self.paths = tap, folder, update, set()

    def compare(self, place, text):
        path = os.path.join(self.folder, place + ".txt")
        self.paths.add(path)
        if self.update:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as stream:
                stream.write(text)
        try:
            with open(path, encoding="utf-8") as stream:
                self.tap.result(place, [] if stream.read() == text else ["it is another one now"])
        except FileNotFoundError:
            self.tap.result(place, [path + " is not there; run test/golden/update"])

    def end(self):
        """The exit status. A file of no place is left over."""
        stray = [os.path.join(at, file) for at, _, files in os.walk(self.folder) for file in files
                 if file.endswith(".txt") and os.path.join(at, file) not in self.paths]
        while self.update and stray:
            os.remove(stray.pop())
        self.tap.result("nothing is left over", stray)
        return self.tap.end()


def schema_skip(folder, what):
    """Why schemas cannot be used; None when they can."""
    try:
        import jsonschema  # noqa: F401 pylint: disable=import-outside-toplevel,unused-import
    except ImportError:
        return "python3-jsonschema is not installed"
    return None if folder and os.path.isdir(folder) else "the %s schemas are not there: %s" % (what, folder)


def schema_errors(folder, file, text):
    """What the schema in a file of the folder, by the draft that it names, finds wrong with a JSON text."""
    import jsonschema  # pylint: disable=import-outside-toplevel
    with open(os.path.join(folder, file), encoding="utf-8") as stream:
        rules = json.load(stream)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        resolver = jsonschema.RefResolver("file://" + os.path.abspath(folder) + "/" + file, rules)
        validator = jsonschema.validators.validator_for(rules, jsonschema.Draft4Validator)(rules, resolver=resolver)
        return ["%s: %s" % (".".join(map(str, e.absolute_path)), e.message[:200]) for e in validator.iter_errors(json.loads(text))]
