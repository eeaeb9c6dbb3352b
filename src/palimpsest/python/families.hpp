// SPDX-License-Identifier: Apache-2.0
// Internal: the families of bindings, each in a file of its name. module.cpp calls them in this
// order.
#pragma once

#include "palimpsest/python/convert.hpp"

namespace palimpsest::python {

#define PALIMPSEST_FOR_EACH_FAMILY(X) \
  X(errors)                           \
  X(dtypes)                           \
  X(tensors)                          \
  X(pickles)                          \
  X(variables)                        \
  X(ops_elementwise)                  \
  X(ops_arrays)                       \
  X(ops_transforms)                   \
  X(ops_sampling)                     \
  X(shared)                           \
  X(functions)                        \
  X(config)                           \
  X(graphs)                           \
  X(names)                            \
  X(parameters)                       \
  X(linops)                           \
  X(factories)                        \
  X(transforms)                       \
  X(linop_tools)                      \
  X(user_linops)                      \
  X(proxes)                           \
  X(options)                          \
  X(results)                          \
  X(solvers)                          \
  X(maps_and_coils)                   \
  X(scans)                            \
  X(raw_scans)                        \
  X(raw_writing)                      \
  X(imaging_steps)                    \
  X(ismrmrd_images)                   \
  X(files)                            \
  X(teams)                            \
  X(distributed)                      \
  X(user_ops)                         \
  X(torch_tensors)                    \
  X(process)                          \
  X(origins)                          \
  X(memory)                           \
  X(copies)                           \
  X(visible)

/// Called before the families. Runs the functions given to at_end() when this module goes.
void begin_and_end_with(nb::module_& m);

#define PALIMPSEST_DECLARE_FAMILY(name) void bind_##name(nb::module_& m);
PALIMPSEST_FOR_EACH_FAMILY(PALIMPSEST_DECLARE_FAMILY)
#undef PALIMPSEST_DECLARE_FAMILY

}  // namespace palimpsest::python
