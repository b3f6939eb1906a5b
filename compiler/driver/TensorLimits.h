//===- TensorLimits.h - what tensor ranks do not go with yet ----------------===//
#pragma once

#include "compiler/config/Config.h"
#include "compiler/driver/Compile.h"

namespace ds::driver {

/// Throws ds::Error where a request asks for tensor ranks and for something that is not cut over them yet.
void requireCutOverTensor(const CompileRequest &request, const config::Config &config);

} // namespace ds::driver
