// RUN: ds-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{op must be a static tensor of f32, f64, bf16, f16, i64, i32 or i1, not 'tensor<?xf32>'}}
train.variable buffer @variable_c1_dynamic : tensor<?xf32> from #train.fill<0.0>

// -----

// expected-error @+1 {{op must be a static tensor of f32, f64, bf16, f16, i64, i32 or i1, not 'tensor<2xindex>'}}
train.variable buffer @variable_c1_index : tensor<2xindex> from #train.fill<0.0>

// -----

// expected-error @+1 {{op must be a static tensor of f32, f64, bf16, f16, i64, i32 or i1, not 'tensor<2xf80>'}}
train.variable buffer @variable_c1_half : tensor<2xf80> from #train.fill<0.0>

// -----

// expected-error @+1 {{op must say with `from` where its first value comes from}}
train.variable parameter @variable_c2_none : tensor<2xf32>

// -----

// expected-error @+1 {{op gradients and metrics start at zero and have no source}}
train.variable gradient @variable_c2_source : tensor<2xf32> from #train.fill<0.0>

// -----

// expected-error @+1 {{op file range of 16 bytes at 0 is not the 24 bytes of 'tensor<2x3xf32>'}}
train.variable parameter @variable_c3_length : tensor<2x3xf32> from #train.file<"w.bin", 0, 16>

// -----

// expected-error @+1 {{op file range of 24 bytes at -8 is not the 24 bytes of 'tensor<2x3xf32>'}}
train.variable parameter @variable_c3_offset : tensor<2x3xf32> from #train.file<"w.bin", -8, 24>

// -----

// expected-error @+1 {{op only a parameter of a float type can be trainable}}
train.variable parameter @variable_c4_integer : tensor<2xi64> from #train.fill<0.0> {trainable}

// -----

// expected-error @+1 {{op only a parameter of a float type can be trainable}}
train.variable buffer @variable_c4_buffer : tensor<2xf32> from #train.fill<0.0> {trainable}

// -----

// expected-note @+1 {{see existing symbol definition here}}
train.variable buffer @twice : tensor<2xf32> from #train.fill<0.0>
// expected-error @+1 {{redefinition of symbol named 'twice'}}
train.variable buffer @twice : tensor<2xf32> from #train.fill<0.0>

// -----

// expected-note @+1 {{declared here}}
train.variable parameter @w : tensor<2xf32> from #train.fill<0.0>
// expected-error @+1 {{op of 'tensor<3xf32>' is of @w, which must be a parameter of that type}}
train.variable gradient @variable_c5_type of @w : tensor<3xf32>

// -----

// expected-note @+1 {{declared here}}
train.variable buffer @b : tensor<2xf32> from #train.fill<0.0>
// expected-error @+1 {{op of 'tensor<2xf32>' is of @b, which must be a parameter of that type}}
train.variable optimizer @variable_c5_buffer of @b : tensor<2xf32> from #train.fill<0.0>

// -----

// expected-error @+1 {{op @w is not a train.variable}}
train.variable gradient @variable_c5_name of @w : tensor<3xf32>

// -----

train.variable parameter @w : tensor<2xf32> from #train.fill<0.0>
// expected-error @+1 {{op is a metric; only gradients and optimizer state are of a parameter}}
train.variable metric @variable_c5_kind of @w : tensor<2xf32>

// -----

// expected-error @+1 {{op elements stored as 'F32' are not widened to 'f32'}}
train.variable parameter @variable_c6_same : tensor<4xf32> from #train.file<"w.bin", 0, 16, "F32">

// -----

// expected-error @+1 {{op elements stored as 'F64' are not widened to 'f32'}}
train.variable parameter @variable_c6_narrowed : tensor<4xf32> from #train.file<"w.bin", 0, 32, "F64">

// -----

// expected-error @+1 {{op elements stored as 'BF16' are not widened to 'i64'}}
train.variable buffer @variable_c6_integer : tensor<4xi64> from #train.file<"w.bin", 0, 8, "BF16">

// -----

// expected-error @+1 {{op file range of 16 bytes at 0 is not the 8 bytes of 'tensor<4xf32>'}}
train.variable parameter @variable_c3_stored : tensor<4xf32> from #train.file<"w.bin", 0, 16, "F16">

// -----

// expected-error @+1 {{op file range of 24 bytes at 0 is not the 48 bytes of 'tensor<4x3xf32>'}}
train.variable parameter @variable_c3_whole : tensor<2x3xf32> whole [4, 3] from #train.file<"w.bin", 0, 24>

// -----

// expected-note @+1 {{declared here}}
train.variable parameter @w : tensor<2x3xf32> whole [4, 3] from #train.fill<0.0>
// expected-error @+1 {{op is a piece of [2, 3], and @w, which it is of, of [4, 3]}}
train.variable gradient @variable_c5_whole of @w : tensor<2x3xf32>

// -----

// expected-error @+1 {{op of 'tensor<2x3xf32>' is no piece of a whole of [5, 3]: it needs a multiple of each size, and a larger one}}
train.variable parameter @variable_c7_multiple : tensor<2x3xf32> whole [5, 3] from #train.fill<0.0>

// -----

// expected-error @+1 {{op of 'tensor<2x3xf32>' is no piece of a whole of [2, 3]}}
train.variable parameter @variable_c7_same : tensor<2x3xf32> whole [2, 3] from #train.fill<0.0>

// -----

// expected-error @+1 {{op of 'tensor<2x3xf32>' is no piece of a whole of [12]}}
train.variable parameter @variable_c7_rank : tensor<2x3xf32> whole [12] from #train.fill<0.0>

// -----

// expected-note @+1 {{declared here}}
train.variable parameter @w : tensor<2x3xf32> whole [4, 3] from #train.fill<0.0>
func.func @read_c1_piece() {
  // expected-error @+1 {{op @w is 'tensor<2x3xf32>', not 'tensor<4x3xf32>'}}
  %0 = train.read @w : tensor<4x3xf32>
  return
}
