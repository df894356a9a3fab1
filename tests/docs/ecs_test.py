#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/deployment/ecs-task-definition.json is what RegisterTaskDefinition takes: botocore has the model of it."""
import json
import pathlib
import re
import sys
import unittest

try:
    import botocore.session
    import botocore.validate
except ImportError as error:
    print(error)
    sys.exit(77)  # skipped

DEPLOYMENT = pathlib.Path(__file__).parents[2] / "docs/deployment"
TASK = json.loads((DEPLOYMENT / "ecs-task-definition.json").read_text())


def report(task):
    """What botocore finds wrong. Enumerations it knows and does not look at."""
    service = botocore.session.Session().get_service_model("ecs")
    shape = service.operation_model("RegisterTaskDefinition").input_shape
    found = botocore.validate.ParamValidator().validate(task, shape)
    return found.generate_report()


def unknown_enumerators(value, shape):
    if shape.type_name == "structure":
        for name, member in shape.members.items():
            if name in value:
                yield from unknown_enumerators(value[name], member)
    elif shape.type_name == "list":
        for one in value:
            yield from unknown_enumerators(one, shape.member)
    elif getattr(shape, "enum", None) and value not in shape.enum:
        yield value


class TaskDefinition(unittest.TestCase):
    def test_it_is_valid(self):
        self.assertEqual("", report(TASK))
        shape = botocore.session.Session().get_service_model("ecs").operation_model("RegisterTaskDefinition").input_shape
        self.assertEqual([], list(unknown_enumerators(TASK, shape)))

    def test_ecs_waits_for_longer_than_the_daemon(self):
        properties = (DEPLOYMENT.parents[1] / "properties/aws.properties").read_text()
        grace = int(re.search(r"^shutdownGraceMillis = (\d+)", properties, re.MULTILINE)[1])
        for container in TASK["containerDefinitions"]:
            self.assertGreater(container["stopTimeout"] * 1000, grace)
            self.assertLessEqual(container["stopTimeout"], 120)

    def test_the_user_is_the_images(self):
        image = (DEPLOYMENT / "Dockerfile").read_text()
        self.assertEqual(re.search(r"^USER (\d+)", image, re.MULTILINE)[1], TASK["containerDefinitions"][0]["user"])


if __name__ == "__main__":
    unittest.main()
