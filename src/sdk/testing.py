"""What type checkers see of `sdk.testing`; see `halide_autotune.sdk.testing`."""

from halide_autotune.sdk.testing import check_model as check_model
from halide_autotune.sdk.testing import check_notifier as check_notifier
from halide_autotune.sdk.testing import check_profile as check_profile
from halide_autotune.sdk.testing import check_technique as check_technique
from halide_autotune.sdk.testing import check_toolchain as check_toolchain
from halide_autotune.sdk.testing import check_transport as check_transport
