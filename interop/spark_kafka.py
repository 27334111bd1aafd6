"""Spark's own connector for Kafka, `format("kafka")`, from Maven, for comparison with Quire's source and sink."""

import re
from pathlib import Path

from interop.maven import fetch

VERSION = "4.2.0"
_ARTIFACTS = {
    "org.apache.spark:spark-sql-kafka-0-10_2.13": VERSION,
    # Of delegation tokens, which are not used here; not every copy of Maven Central has it in the connector's version.
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13": "4.0.0",
}
_MIRRORS = ("gcs-maven-central-mirror",)


def connector_jars() -> str:
    """For `spark.jars`: the connector, and its dependencies that Spark does not have."""
    import pyspark

    lib = fetch(f"spark-kafka-{VERSION}", f"Spark's Kafka connector {VERSION}", _ARTIFACTS, _MIRRORS)
    there = {_artifact(jar) for jar in (Path(pyspark.__file__).parent / "jars").glob("*.jar")}
    return ",".join(str(jar) for jar in sorted(lib.glob("*.jar")) if _artifact(jar) not in there)


def _artifact(jar: Path) -> str:
    """The name without the version."""
    return re.sub(r"-\d.*", "", jar.name.replace("-0-10_2.13", ""))
