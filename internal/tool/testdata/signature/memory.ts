create_entities(args: { entities: { entityType: string; name: string; observations: string[] }[] }): Promise<{ entities: { entityType: string; name: string; observations: string[] }[] }>;
create_relations(args: { relations: { from: string; relationType: string; to: string }[] }): Promise<{ relations: { from: string; relationType: string; to: string }[] }>;
add_observations(args: { observations: { contents: string[]; entityName: string }[] }): Promise<{ results: { addedObservations: string[]; entityName: string }[] }>;
delete_entities(args: { entityNames: string[] }): Promise<{ message: string; success: boolean }>;
delete_observations(args: { deletions: { entityName: string; observations: string[] }[] }): Promise<{ message: string; success: boolean }>;
delete_relations(args: { relations: { from: string; relationType: string; to: string }[] }): Promise<{ message: string; success: boolean }>;
read_graph(): Promise<{ entities: { entityType: string; name: string; observations: string[] }[]; relations: { from: string; relationType: string; to: string }[] }>;
search_nodes(args: { query: string }): Promise<{ entities: { entityType: string; name: string; observations: string[] }[]; relations: { from: string; relationType: string; to: string }[] }>;
open_nodes(args: { names: string[] }): Promise<{ entities: { entityType: string; name: string; observations: string[] }[]; relations: { from: string; relationType: string; to: string }[] }>;
