"""Checks for the authors of extensions, one for each kind: `from sdk.testing import check_technique`.

Call them from tests of your own; docs/extending.md says what they check.
"""

from halide_autotune.sdk.contracts.model import check_model as check_model
from halide_autotune.sdk.contracts.notifier import check_notifier as check_notifier
from halide_autotune.sdk.contracts.profile import check_profile as check_profile
from halide_autotune.sdk.contracts.technique import check_technique as check_technique
from halide_autotune.sdk.contracts.toolchain import check_toolchain as check_toolchain
from halide_autotune.sdk.contracts.transport import check_transport as check_transport
