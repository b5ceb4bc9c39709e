//! MCP on standard input and output, for clients that start their servers themselves.

use rmcp::service::ServiceExt;

use super::call::Visitor;
use super::service::Server;
use crate::shared::Shared;

/// Speaks MCP on the streams until the input ends.
pub(crate) async fn serve(shared: Shared, visitor: Visitor) -> anyhow::Result<()> {
    let running = Server::of(shared, visitor).serve(rmcp::transport::stdio()).await?;
    running.waiting().await?;
    Ok(())
}
