// The functions among the operators without a scope of their own: {name, why}.
{"can_cast", "says something of dtypes"}, {"from_blob", "makes a tensor of memory that is there"},
    {"ger", "outer() by another name"}, {"is_pinned", "says something of a tensor"},
    {"pinned_memory_device", "says something of the devices"}, {"result_type", "says something of dtypes"},
    {"to_dense", "returns the tensor itself"},
