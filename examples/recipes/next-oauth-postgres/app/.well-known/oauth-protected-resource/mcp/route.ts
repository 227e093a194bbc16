export { GET } from "@/app/mcp/route";
