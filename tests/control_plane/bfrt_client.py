"""A BfRuntime client that scripts of tests begin with: `client` writes entries by the names of `bf-rt.json`."""

CLIENT = '''\
import json
import sys

import grpc

from p4switch.bfrt.messages import bfruntime_pb2 as pb

address, switch = sys.argv[1:]


class Client:
    def __init__(self):
        self.channel = grpc.insecure_channel(address, options=[("grpc.enable_http_proxy", 0)])
        request, response = pb.GetForwardingPipelineConfigRequest, pb.GetForwardingPipelineConfigResponse
        config = self.call("GetForwardingPipelineConfig", request, response)(request(device_id=0))
        self.tables = {t["name"].split(".")[-1]: t for t in json.loads(config.config[0].bfruntime_info)["tables"]}

    def call(self, name, request, response):
        path = "/bfrt_proto.BfRuntime/" + name
        return self.channel.unary_unary(path, request.SerializeToString, response.FromString)

    def write(self, table, fill):
        request = pb.WriteRequest()
        request.target.pipe_id = 0xFFFF
        update = request.updates.add(type=pb.Update.INSERT)
        update.entity.table_entry.table_id = table["id"]
        fill(update.entity.table_entry)
        self.call("Write", pb.WriteRequest, pb.WriteResponse)(request)

    def insert(self, name, key, action=None, selector_group=None, **data):
        table = self.tables[name]

        def fill(entry):
            for field, value in key.items():
                (number,) = (k["id"] for k in table["key"] if k["name"] == field)
                into = entry.key.fields.add(field_id=number)
                if isinstance(value, tuple):
                    into.lpm.value, into.lpm.prefix_len = value
                else:
                    into.exact.value = value
            if action is None:
                self.singleton(table, entry, "$SELECTOR_GROUP_ID", selector_group)
            else:
                self.act(table, entry, action, data)

        self.write(table, fill)

    def act(self, table, entry, action, data):
        (spec,) = (a for a in table["action_specs"] if a["name"].split(".")[-1] == action)
        entry.data.action_id = spec["id"]
        for field, value in data.items():
            (number,) = (d["id"] for d in spec["data"] if d["name"] == field)
            entry.data.fields.add(field_id=number, stream=value)

    @staticmethod
    def data_id(table, name):
        fields = [field for d in table["data"] for field in d.get("oneof", [d.get("singleton")])]
        (number,) = (field["id"] for field in fields if field["name"] == name)
        return number

    def singleton(self, table, entry, name, value):
        entry.data.fields.add(field_id=self.data_id(table, name), stream=value.to_bytes(4, "big"))

    def member(self, name, number, action, **data):
        table = self.tables[name]

        def fill(entry):
            entry.key.fields.add(field_id=table["key"][0]["id"]).exact.value = number.to_bytes(4, "big")
            self.act(table, entry, action, data)

        self.write(table, fill)

    def group(self, name, number, members):
        table = self.tables[name]

        def fill(entry):
            entry.key.fields.add(field_id=table["key"][0]["id"]).exact.value = number.to_bytes(4, "big")
            into = entry.data.fields.add(field_id=self.data_id(table, "$ACTION_MEMBER_ID"))
            into.int_arr_val.val.extend(members)
            into = entry.data.fields.add(field_id=self.data_id(table, "$ACTION_MEMBER_STATUS"))
            into.bool_arr_val.val.extend([True] * len(members))
            self.singleton(table, entry, "$MAX_GROUP_SIZE", 8)

        self.write(table, fill)


client = Client()
'''
